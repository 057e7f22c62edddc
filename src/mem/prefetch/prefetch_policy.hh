// SPDX-License-Identifier: BSD-3-Clause
// The registry of prefetch policies, and the streams that they learn. A policy is one source file of src/mem/prefetch: it
// registers a name and a function that learns from an access and says which stream the access goes on. What fetches is
// elsewhere: mem/ruby/runtime/prefetch/l1_prefetcher.hh for a core, mem/dram/dram_prefetcher.hh for a memory controller.
// The function is called at misses and at the first use of a prefetched line, never at other hits.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/types.hh"

namespace moscope {

/// Which cache or controller a policy is of.
enum class PrefetchLevel : std::uint8_t { l1d, l1i, dram };

/// Accesses that are believed to go on by a stride.
struct PrefetchStream {
    Addr key = ~Addr{0};     ///< what the policy finds it by
    Addr line = 0;           ///< the last access
    std::int32_t stride = 0; ///< lines; 0: not known
    bool confirmed = false;  ///< the stride was seen twice
};

struct PrefetchStreams {
    std::vector<PrefetchStream> all;
    unsigned reach = 63; ///< the largest stride
    unsigned next = 0;   ///< the one to be replaced, where the policy does so in turn

    PrefetchStreams(unsigned count, unsigned largest_stride) : all(count), reach(largest_stride) {}
    /// An access of a known stream; its number if the stride is confirmed now, else kNone.
    unsigned follow(unsigned number, Addr line);
    static constexpr unsigned kNone = ~0u;
};

struct PrefetchPolicy {
    PrefetchLevel level;
    std::string_view name; ///< a literal: what machine descriptions write
    /// An access to a line by an instruction (0: unknown): the number of the stream along which to fetch, or kNone. Null:
    /// nothing is fetched.
    unsigned (*learn)(PrefetchStreams &, Addr pc, Addr line);
    bool goes_on = true; ///< of an L1: the first use of a line that was fetched goes on with its stream
};

/// Prefetchers do not go beyond the page of the access: what follows it in memory is another page's.
inline constexpr Addr kPrefetchPage = 4096;

/// Calls f(target) for each of `ahead` strides beyond `line` within its page, until f returns false.
template <class F> void each_ahead(Addr line, std::int32_t stride, unsigned ahead, F &&f) {
    for (unsigned k = 1; k <= ahead; ++k) {
        const Addr target = line + static_cast<Addr>(std::int64_t{stride} * k * kLineBytes);
        if ((target ^ line) >= kPrefetchPage || !f(target))
            return;
    }
}

/// A static object in the source file of the policy.
class RegisteredPrefetch {
  public:
    explicit RegisteredPrefetch(const PrefetchPolicy &policy);
};

/// UserError `LEVEL_prefetch.policy: ...` with all names if there is none of this name.
const PrefetchPolicy &prefetch_policy(PrefetchLevel, std::string_view name);
/// Names of all policies of a level ("l1d", "l1i", "dram"), sorted.
std::vector<std::string> prefetch_policies(std::string_view level);

} // namespace moscope
