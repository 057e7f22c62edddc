// SPDX-License-Identifier: BSD-3-Clause
// Host memory is slow compared to a transition, and the tables of a whole machine exceed the host's caches. The line
// that a controller will look up is known when the message is sent, several events before the controller receives it.
// The sender therefore prefetches the cells of the receiver's tables that locate the line. Nothing waits, and only the
// host's caches change.
#pragma once

#include <vector>

#include "mem/ruby/runtime/perfect_cache_memory.hh"

namespace moscope::ruby {

/// The large tables in which one controller looks up lines.
struct LineStores {
    std::vector<const PerfectTable *> tables;

    /// A message about `line` is on its way here, or soon will be.
    void prefetch(Addr line) const {
        for (const PerfectTable *t : tables)
            t->prefetch_cell(line);
    }
};

} // namespace moscope::ruby
