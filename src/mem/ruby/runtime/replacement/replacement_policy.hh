// SPDX-License-Identifier: BSD-3-Clause
// The registry of replacement policies. A policy is one source file of src/mem/ruby/runtime/replacement: it registers a
// name, says what a hit does to the order of replacement, and, where the oldest line is not the one to be replaced,
// gives functions of its own. Time stamps stay with the cache array (cache_memory.hh), which writes them inline at
// each hit; functions are called at a miss, or at each hit if the policy says `Hit::call`.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/rng.hh"
#include "base/types.hh"

namespace moscope::ruby {

/// What a policy's functions see of one cache array. A slot is set * ways + way.
struct ReplacementState {
    unsigned sets = 1, ways = 1;
    const Tick *stamps = nullptr;     ///< by slot: the last use (`Hit::stamp`), else the placing of the line
    std::vector<std::uint64_t> words; ///< the policy's own, `words_per_set` for each set, 0 at first
    Rng rng;                          ///< seeded by the run
};

struct ReplacementPolicy {
    /// What a hit does to the order of replacement.
    enum class Hit : std::uint8_t {
        nothing,
        stamp, ///< it writes the line's time stamp, also inline
        call   ///< it calls `touch`; hits are then never served inline, which costs host time
    };

    std::string_view name; ///< a literal: what machine descriptions write
    Hit hit = Hit::stamp;
    unsigned words_per_set = 0;
    /// The way to be replaced in a full set; two calls without a change in between return the same way. Null: the way
    /// with the oldest stamp, the lowest of several.
    unsigned (*victim)(const ReplacementState &, unsigned set) = nullptr;
    /// A hit, and a new line that counts as used.
    void (*touch)(ReplacementState &, unsigned set, unsigned way) = nullptr;
    /// A new line has been placed, before its `touch`.
    void (*placed)(ReplacementState &, unsigned set, unsigned way) = nullptr;
    /// What is wrong with an array of this shape, as `problem: expected ...`; empty: nothing.
    std::string (*refuse)(unsigned sets, unsigned ways) = nullptr;
};

/// A static object in the source file of the policy.
class RegisteredReplacement {
  public:
    explicit RegisteredReplacement(const ReplacementPolicy &policy);
};

/// The policy of this name. UserError `where.replacement: ...` with all names if there is none.
const ReplacementPolicy &replacement_policy(std::string_view name, const std::string &where);
/// Names of all policies, sorted.
std::vector<std::string> replacement_policies();

} // namespace moscope::ruby
