// SPDX-License-Identifier: BSD-3-Clause
// Tree pseudo-LRU: one bit for each inner node of a binary tree over the ways. A use points every node on the path to
// its way at the other half; the victim is found by following the bits from the root. Node 1 is the root, the
// children of node n are 2n and 2n + 1, and way w is leaf w + ways.
#include <bit>

#include "mem/ruby/runtime/replacement/replacement_policy.hh"

namespace moscope::ruby {

namespace {

unsigned victim(const ReplacementState &s, unsigned set) {
    unsigned node = 1;
    while (node < s.ways)
        node = 2 * node + static_cast<unsigned>((s.words[set] >> node) & 1);
    return node - s.ways;
}

void touch(ReplacementState &s, unsigned set, unsigned way) {
    for (unsigned node = way + s.ways; node > 1; node /= 2) {
        const std::uint64_t bit = std::uint64_t{1} << node / 2;
        s.words[set] = node & 1 ? s.words[set] & ~bit : s.words[set] | bit;
    }
}

std::string refuse(unsigned, unsigned ways) {
    return std::has_single_bit(ways) && ways <= 64
               ? ""
               : std::to_string(ways) + " ways with tree_plru: expected a power of two of at most 64";
}

const RegisteredReplacement registered({
    .name = "tree_plru",
    .hit = ReplacementPolicy::Hit::call,
    .words_per_set = 1,
    .victim = victim,
    .touch = touch,
    .refuse = refuse,
});

} // namespace

} // namespace moscope::ruby
