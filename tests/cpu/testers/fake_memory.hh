// SPDX-License-Identifier: BSD-3-Clause
// A memory system for the testers' own tests: flat bytes, a random latency per access, accesses performed at
// their completion in the order of their issue per core and line. Faults can be switched on, one in so many
// accesses, that a tester has to notice. Ticks are femtoseconds.
#pragma once

#include <algorithm>
#include <cstring>
#include <memory>
#include <vector>

#include "base/rng.hh"
#include "mem/port.hh"
#include "sim/event_queue.hh"

namespace moscope::testers {

class FakeMemory : public Component {
  public:
    enum class Fault { none, stale_load, lost_store, torn_rmw, neighbour, lost_access };

    FakeMemory(EventQueue &queue, unsigned ports, std::uint64_t bytes, std::uint64_t seed = 1)
        : Component(queue, "fake memory", [](Component &c, Tick now) { static_cast<FakeMemory &>(c).wake(now); }),
          memory(bytes),
          old_(bytes),
          rng_(seed) {
        for (unsigned i = 0; i < ports; ++i) {
            ports_.push_back(std::make_unique<Port>());
            Port &p = *ports_.back();
            p.memory_ = this;
            p.issue_ = [](void *self, Access &a) { static_cast<FakeMemory *>(self)->issue(a); };
            p.probe_ = [](void *, Port &, AccessKind, Addr, Tick) -> std::byte * { return nullptr; };
            p.hit_done_ = [](void *, Tick now) { return now + 1'000'000; };
        }
    }

    Port &port(unsigned i) { return *ports_[i]; }
    std::vector<Port *> ports(unsigned from, unsigned count) {
        std::vector<Port *> v;
        for (unsigned i = from; i < from + count; ++i)
            v.push_back(ports_[i].get());
        return v;
    }

    std::vector<std::byte> memory;
    Fault fault = Fault::none;
    unsigned one_in = 200;
    Tick longest = 100'000'000;
    std::uint64_t performed = 0;
    unsigned most_of_one = 0; ///< accesses of one owner that were under way at a time

  private:
    void issue(Access &a) {
        Tick t = queue().now() + 1 + static_cast<Tick>(rng_.below(static_cast<std::uint64_t>(longest)));
        // Accesses of one owner to a line keep their order.
        for (const auto &p : pending_)
            if (p.access->owner == a.owner && line_of(p.access->addr.value) == line_of(a.addr.value))
                t = std::max(t, p.at + 1);
        pending_.push_back({&a, t});
        const auto of_owner = [&a](const Pending &p) { return p.access->owner == a.owner; };
        most_of_one = std::max(most_of_one, static_cast<unsigned>(std::ranges::count_if(pending_, of_owner)));
        schedule_no_later_than(t);
    }
    void wake(Tick now) {
        for (bool again = true; again;) {
            again = false;
            for (std::size_t i = 0; i < pending_.size(); ++i)
                if (pending_[i].at <= now) {
                    Access *a = pending_[i].access;
                    pending_[i] = pending_.back();
                    pending_.pop_back();
                    perform(*a, now);
                    again = true;
                    break;
                }
        }
        Tick next = kNever;
        for (const auto &p : pending_)
            next = std::min(next, p.at);
        if (next != kNever)
            schedule_no_later_than(next);
    }
    bool faulty(Fault f) { return fault == f && rng_.below(one_in) == 0; }
    void perform(Access &a, Tick now) {
        ++performed;
        std::byte *at = &memory[a.addr.value];
        switch (a.kind) {
        case AccessKind::load:
        case AccessKind::uncached_load:
        case AccessKind::fetch:
            std::memcpy(a.data, faulty(Fault::stale_load) ? &old_[a.addr.value] : at, a.size);
            break;
        case AccessKind::store:
        case AccessKind::nt_store:
            if (faulty(Fault::lost_store))
                break;
            std::memcpy(&old_[a.addr.value], at, a.size);
            std::memcpy(at, a.data, a.size);
            if (faulty(Fault::neighbour))
                memory[a.addr.value ^ (kLineBytes / 2)] ^= std::byte{0x10};
            break;
        case AccessKind::rmw: {
            std::byte seen[8];
            std::memcpy(seen, faulty(Fault::torn_rmw) ? &old_[a.addr.value] : at, a.size);
            a.rmw(a.rmw_context, seen);
            std::memcpy(&old_[a.addr.value], at, a.size);
            std::memcpy(at, seen, a.size);
            break;
        }
        case AccessKind::flush: break;
        }
        if (faulty(Fault::lost_access))
            return;
        a.done = now;
        a.on_done(a);
    }

    struct Pending {
        Access *access;
        Tick at;
    };
    std::vector<std::byte> old_; ///< what was there before the last write
    Rng rng_;
    std::vector<std::unique_ptr<Port>> ports_;
    std::vector<Pending> pending_;
};

} // namespace moscope::testers
