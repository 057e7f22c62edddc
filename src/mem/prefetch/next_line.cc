// SPDX-License-Identifier: BSD-3-Clause
// Fetches the lines after each line that misses, whatever was accessed before. The L1 instruction cache works this way:
// it fetches the line that misses and the next one (AMD 25112, section A.5). In the L1 data cache this policy models no
// part of the machine: it is the simplest prefetcher to compare with, and the one that fetches most.
#include "mem/prefetch/prefetch_policy.hh"

namespace moscope {

namespace {

unsigned learn(PrefetchStreams &s, Addr, Addr line) {
    s.all[0] = {0, line, 1, true};
    return 0;
}

const RegisteredPrefetch of_data({PrefetchLevel::l1d, "next_line", learn});
const RegisteredPrefetch of_instructions({PrefetchLevel::l1i, "next_line", learn, false});

} // namespace

} // namespace moscope
