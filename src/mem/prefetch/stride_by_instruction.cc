// SPDX-License-Identifier: BSD-3-Clause
// Strides by instruction, the data prefetcher of AMD's family 10h as far as it is published: for each instruction, the
// distance between the lines on which it misses. It fetches once a distance is seen twice in a row. Accesses without an
// instruction address form one sequence per core.
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
