// SPDX-License-Identifier: BSD-3-Clause
// Cores that read private buffers sequentially with a fixed number of lines in flight, in front of one DRAM
// controller: the bandwidth microbenchmark, without caches. A request travels `trip` to the controller and its data
// `trip` back; a core issues its next line when one comes back.
#pragma once

#include <algorithm>
#include <queue>
#include <vector>

#include "mem/dram/controller.hh"

namespace moscope::dram::testing {

class Streams : public Component {
  public:
    Streams(EventQueue &q, DramController &d, unsigned cores, unsigned in_flight, Tick trip)
        : Component(q, "streams", &Streams::wake), dram_(d), trip_(trip) {
        d.set_done(&Streams::done, this);
        d.set_space(&Streams::space, this);
        cores_.resize(cores);
        for (unsigned c = 0; c < cores; ++c)
            for (unsigned i = 0; i < in_flight; ++i)
                events_.push({Tick{i} * 1'000'000 + Tick{c} * 137'000, c});
        schedule(0);
    }
    std::vector<Addr> base; ///< of each core's buffer
    Addr page_bytes = 0;    ///< buffers are made of pages of this size in random order, 0: contiguous
    Addr span = 0;          ///< bytes that the pages lie in

    std::uint64_t lines = 0;
    std::vector<std::uint64_t> per_core;
    Tick latency = 0;

  private:
    struct Core {
        Addr next = 0;
    };
    struct Arrival {
        Tick when;
        unsigned core;
        bool operator>(const Arrival &o) const { return when != o.when ? when > o.when : core > o.core; }
    };
    static void wake(Component &self, Tick now) {
        auto &s = static_cast<Streams &>(self);
        while (!s.events_.empty() && s.events_.top().when <= now) {
            if (!s.dram_.can_accept(false))
                return;
            const unsigned c = s.events_.top().core;
            s.events_.pop();
            DramRequest r;
            r.addr = s.place(c, s.cores_[c].next);
            s.cores_[c].next += kLineBytes;
            r.context = reinterpret_cast<void *>(static_cast<std::uintptr_t>(c));
            s.dram_.push(r, now);
        }
        if (!s.events_.empty())
            s.schedule_no_later_than(s.events_.top().when);
    }
    Addr place(unsigned core, Addr offset) const {
        if (!page_bytes)
            return base[core] + offset;
        std::uint64_t z = (offset / page_bytes + 1) * 0x9e3779b97f4a7c15ull + core * 0xbf58476d1ce4e5b9ull;
        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
        z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
        z ^= z >> 31;
        return z % (span / page_bytes) * page_bytes + offset % page_bytes;
    }
    static void done(void *self, const DramRequest &r, Tick when) {
        auto *s = static_cast<Streams *>(self);
        const auto c = static_cast<unsigned>(reinterpret_cast<std::uintptr_t>(r.context));
        ++s->lines;
        s->per_core.resize(s->cores_.size());
        ++s->per_core[c];
        s->latency += when - r.arrival + 2 * s->trip_;
        s->events_.push({when + 2 * s->trip_, c});
        s->schedule_no_later_than(when + 2 * s->trip_);
    }
    static void space(void *self, Tick now) { static_cast<Streams *>(self)->schedule_no_later_than(now); }

    DramController &dram_;
    Tick trip_;
    std::vector<Core> cores_;
    std::priority_queue<Arrival, std::vector<Arrival>, std::greater<>> events_;
};

} // namespace moscope::dram::testing
