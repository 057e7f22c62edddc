// SPDX-License-Identifier: BSD-3-Clause
// Host memory is slow compared to a transition, and the cache arrays of a whole machine exceed the host's caches. The
// line that a controller will look up is known when the message is sent, several events before the controller
// receives it. The sender therefore prefetches host data in two steps. When it sends the message, it prefetches the
// data that locates the line (the tags of a set, the cell of a table). Two messages later this data has arrived, and
// the table's entry is prefetched, and the array's entry of the likely victim. No step waits, and only the host's
// caches change.
#pragma once

#include <array>

#include "mem/ruby/runtime/cache_memory.hh"
#include "mem/ruby/runtime/perfect_cache_memory.hh"

namespace moscope::ruby {

/// The large arrays and tables in which one controller looks up lines.
struct LineStores {
    std::vector<const CacheMemory *> arrays;
    std::vector<const PerfectTable *> tables;

    void prefetch_sets(Addr line) const {
        for (const CacheMemory *a : arrays)
            a->prefetch_set(line);
        for (const PerfectTable *t : tables)
            t->prefetch_cell(line);
    }
    void prefetch_lines(Addr line, bool placed) const {
        if (placed)
            for (const CacheMemory *a : arrays)
                a->prefetch_victim(line);
        for (const PerfectTable *t : tables)
            t->prefetch_entry(line);
    }
};

/// One per machine.
class HostPrefetch {
  public:
    /// A message about `line` is under way to the controller with these stores. placed: that controller will probably
    /// allocate the line in an array, so the likely victim is prefetched, too.
    void prefetch(const LineStores &to, Addr line, bool placed) {
        to.prefetch_sets(line);
        Pending &due = ring_[n_++ % kAhead];
        if (due.to)
            due.to->prefetch_lines(due.line, due.placed);
        due = {&to, line, placed};
    }

  private:
    static constexpr unsigned kAhead = 2;
    struct Pending {
        const LineStores *to = nullptr;
        Addr line = 0;
        bool placed = false;
    };
    std::array<Pending, kAhead> ring_;
    unsigned n_ = 0;
};

} // namespace moscope::ruby
