// SPDX-License-Identifier: BSD-3-Clause
// The lines after each line that is missed, without a look at what was accessed before. It models no part of the machine: it
// is the simplest prefetcher to compare with, and the one that fetches most.
#include "mem/prefetch/prefetch_policy.hh"

namespace moscope {

namespace {

unsigned learn(PrefetchStreams &s, Addr, Addr line) {
    s.all[0] = {0, line, 1, true};
    return 0;
}

const RegisteredPrefetch registered({PrefetchLevel::l1d, "next_line", learn});

} // namespace

} // namespace moscope
