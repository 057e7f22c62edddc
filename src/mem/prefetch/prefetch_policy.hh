// SPDX-License-Identifier: BSD-3-Clause
// The registry of prefetch policies, and the streams that they learn. A policy is one source file of src/mem/prefetch: it
// registers a name and a function that learns from an access and returns the stream that the access continues. The
// fetching is done elsewhere: mem/ruby/runtime/prefetch/l1_prefetcher.hh for a core, mem/dram/dram_prefetcher.hh for a
// memory controller.
// The function is called at misses and at the first use of a prefetched line, never at other hits.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/types.hh"

namespace moscope {

/// The cache or controller that a policy is for.
enum class PrefetchLevel : std::uint8_t { l1d, l1i, dram };

/// A sequence of accesses that is expected to continue with the same stride.
struct PrefetchStream {
    Addr key = ~Addr{0};     ///< by which the policy finds the stream
    Addr line = 0;           ///< the last access
    std::int32_t stride = 0; ///< lines; 0: not known
    bool confirmed = false;  ///< the stride was seen twice in a row
};

struct PrefetchStreams {
    std::vector<PrefetchStream> all;
    unsigned reach = 63; ///< the largest stride
    unsigned next = 0;   ///< the stream to replace next, if the policy replaces them in turn

    PrefetchStreams(unsigned count, unsigned largest_stride) : all(count), reach(largest_stride) {}
    /// Records an access of a known stream. Returns `number` if the access confirms the stride, else kNone.
    unsigned follow(unsigned number, Addr line);
    static constexpr unsigned kNone = ~0u;
};

struct PrefetchPolicy {
    PrefetchLevel level;
    std::string_view name; ///< a literal: what machine descriptions write
    /// Learns from an access to a line by the instruction at pc (0: unknown). Returns the number of the stream along
    /// which to fetch, or kNone. Null: nothing is fetched.
    unsigned (*learn)(PrefetchStreams &, Addr pc, Addr line);
    bool goes_on = true; ///< in an L1: the first use of a prefetched line continues its stream
};

/// Prefetchers do not go beyond the page of the access: the next physical page may belong to something else.
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
