// SPDX-License-Identifier: BSD-3-Clause
// Host memory is slow compared to a transition, and the arrays of a whole machine's caches are larger than
// the host's own. But which line a controller will look up is known as soon as a message for it is on its way, some
// other events earlier. So a message is prefetched for when it is sent: at once, what tells where the line is (a set's
// tags, a table's cell); two messages later, when that has come, the line itself. Nothing waits,
// and nothing but the host's caches changes.
#pragma once

#include <array>

#include "mem/ruby/runtime/cache_memory.hh"
#include "mem/ruby/runtime/perfect_cache_memory.hh"

namespace moscope::ruby {

/// What one controller looks lines up in.
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
        for (const CacheMemory *a : arrays)
            a->prefetch_line(line, placed);
        for (const PerfectTable *t : tables)
            t->prefetch_entry(line);
    }
};

/// One per machine.
class HostPrefetch {
  public:
    /// A message about `line` is under way to where these stores are. placed: the line will probably be put into an
    /// array there, so that another may have to leave.
    void prefetch(const LineStores &to, Addr line, bool placed) {
        to.prefetch_sets(line);
        Announced &due = ring_[n_++ % kAhead];
        if (due.to)
            due.to->prefetch_lines(due.line, due.placed);
        due = {&to, line, placed};
    }

  private:
    static constexpr unsigned kAhead = 2;
    struct Announced {
        const LineStores *to = nullptr;
        Addr line = 0;
        bool placed = false;
    };
    std::array<Announced, kAhead> ring_;
    unsigned n_ = 0;
};

} // namespace moscope::ruby
