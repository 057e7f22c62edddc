// SPDX-License-Identifier: BSD-3-Clause
// Strides by instruction, the data prefetcher of AMD's family 10h as far as it is published: for each instruction the distance
// of the lines that it missed. A distance that is seen twice in a row makes it fetch. Where the address of the instruction is
// not known (traffic generators), all accesses of the core are one sequence.
#include "mem/prefetch/prefetch_policy.hh"

namespace moscope {

namespace {

unsigned learn(PrefetchStreams &s, Addr pc, Addr line) {
    const auto number = static_cast<unsigned>((pc * 0x9e3779b97f4a7c15ull >> 32) % s.all.size());
    if (s.all[number].key != pc) {
        s.all[number] = {pc, line, 0, false};
        return PrefetchStreams::kNone;
    }
    return s.follow(number, line);
}

const RegisteredPrefetch registered({PrefetchLevel::l1d, "stride", learn});

} // namespace

} // namespace moscope
