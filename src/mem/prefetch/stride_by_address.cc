// SPDX-License-Identifier: BSD-3-Clause
// Strides by address, for a memory controller, which sees reads of all cores and no instructions: a read continues the
// sequence in its page whose last read lies within reach. It fetches once a distance is seen twice in a row (AMD 31116
// names strides of up to four lines in either direction; the rest is assumed).
#include "mem/prefetch/prefetch_policy.hh"

#include <cstdlib>

namespace moscope {

namespace {

unsigned learn(PrefetchStreams &s, Addr, Addr line) {
    const Addr page = line / kPrefetchPage;
    const auto reach = static_cast<std::int64_t>(s.reach * kLineBytes);
    for (unsigned i = 0; i < s.all.size(); ++i)
        if (s.all[i].key == page && std::llabs(static_cast<std::int64_t>(line - s.all[i].line)) <= reach)
            return s.follow(i, line);
    s.all[s.next] = {page, line, 0, false};
    s.next = s.next + 1 == s.all.size() ? 0 : s.next + 1;
    return PrefetchStreams::kNone;
}

const RegisteredPrefetch registered({PrefetchLevel::dram, "stride", learn});

} // namespace

} // namespace moscope
