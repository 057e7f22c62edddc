// SPDX-License-Identifier: BSD-3-Clause
// Choice, issue and checking of the random tester's accesses.
#include "cpu/testers/random_tester.hh"

#include <cstring>

namespace moscope::testers {

namespace {

constexpr std::uint64_t kOpsPerHotSet = 4000;

void put(void *bytes, std::uint64_t value, unsigned size) { std::memcpy(bytes, &value, size); }

} // namespace

class RandomTester::Issuer : public Component {
  public:
    Issuer(RandomTester &t, EventQueue &queue, Port &port, Agent who, std::uint64_t seed)
        : Component(queue, "tester " + agent_name(who),
                    [](Component &c, Tick now) { static_cast<Issuer &>(c).wake(now); }),
          t_(t),
          port_(port),
          rng_(seed),
          who_(who),
          device_(who >= kFirstDevice),
          cursor_(port.core_clock_) {
        const unsigned n = device_ ? 2 : t.p_.in_flight;
        for (unsigned i = 0; i < n; ++i)
            idle_ |= 1u << i;
        all_idle_ = idle_;
        for (auto &op : ops_) {
            op.access.owner = this;
            op.access.on_done = [](Access &a) { static_cast<Issuer *>(a.owner)->done(a); };
            op.access.rmw = [](void *op, void *bytes) {
                auto *o = static_cast<Op *>(op);
                static_cast<Issuer *>(o->access.owner)->swap(*o, bytes);
            };
            op.access.rmw_context = &op;
        }
    }

    bool idle() const { return idle_ == all_idle_; }
    int number_of(TxnId txn) const {
        for (const Op &o : ops_)
            if (o.number >= 0 && o.access.txn == txn)
                return o.number;
        return -1;
    }
    Tick oldest() const {
        Tick t = kNever;
        for (unsigned left = in_flight(); left; left &= left - 1)
            t = std::min(t, lowest(left).access.issued);
        return t;
    }

  private:
    struct Op {
        Access access;
        std::uint32_t line = 0;
        std::uint32_t location = 0; ///< the first of several where the whole line is written
        bool whole_line = false;
        int number = -1;         ///< in the record
        std::uint64_t value = 0; ///< written or found
        alignas(8) std::array<std::byte, kLineBytes> bytes;
    };

    /// The accesses in flight: a bit for each of ops_.
    unsigned in_flight() const { return all_idle_ & ~idle_; }
    const Op &lowest(unsigned bits) const { return ops_[static_cast<unsigned>(__builtin_ctz(bits))]; }

    unsigned pause() {
        return static_cast<unsigned>(rng_.below(device_ ? t_.p_.device_gap_cycles + 1 : t_.p_.think_cycles + 1));
    }

    void wake(Tick now) {
        if (!idle_ || !t_.may_issue())
            return;
        try_issue(now, true);
        if (idle_)
            again(now);
    }
    void again(Tick now) {
        if (t_.may_issue())
            schedule_no_later_than(after(now, 1 + pause()));
    }
    Tick after(Tick now, unsigned cycles) {
        cursor_.advance_to(now);
        return cursor_.after(cycles);
    }

    AccessKind choose_kind() {
        unsigned x = static_cast<unsigned>(rng_.below(1000));
        if (device_)
            return x < 500 ? AccessKind::load : AccessKind::store;
        const auto &p = t_.p_;
        const std::pair<unsigned, AccessKind> shares[] = {
            {p.stores, AccessKind::store},  {p.rmws, AccessKind::rmw},
            {p.fetches, AccessKind::fetch}, {p.nt_stores, AccessKind::nt_store},
            {p.flushes, AccessKind::flush}, {p.uncached_loads, AccessKind::uncached_load}};
        for (const auto &[share, kind] : shares) {
            if (x < share)
                return kind;
            x -= share;
        }
        return AccessKind::load;
    }

    bool using_location(unsigned location, bool any_of_line) const {
        for (unsigned left = in_flight(); left; left &= left - 1) {
            const Op &o = lowest(left);
            if (o.location == location)
                return true;
            if ((any_of_line || o.whole_line) && o.line == t_.ref_.at(location).line)
                return true;
        }
        return false;
    }

    void try_issue(Tick now, bool inline_allowed) {
        AccessKind kind = choose_kind();
        if (rng_.below(4) != 0)
            last_line_ = t_.pick_line(rng_);
        const auto &pool = t_.ref_.lines()[last_line_];
        unsigned location = pool.first + static_cast<unsigned>(rng_.below(pool.count));
        const bool past_caches = kind == AccessKind::nt_store || (device_ && kind == AccessKind::store);
        const bool only_whole = device_ ? t_.p_.gentle_devices : t_.p_.whole_line_nt_stores;
        const bool whole = past_caches && (only_whole || rng_.below(2) == 0);
        if (device_ && t_.p_.gentle_devices && t_.line_in_device_[last_line_])
            return;
        if (whole)
            location = pool.first;
        if (using_location(location, whole || kind == AccessKind::flush))
            return;
        const bool writes = past_caches || kind == AccessKind::store || kind == AccessKind::rmw;
        // Distant writes that overlap others make the reference unsure, so only some of them do.
        const bool alone = past_caches && (rng_.below(4) != 0 || (device_ && t_.p_.gentle_devices));
        if (whole) {
            for (unsigned k = pool.first; k < pool.first + pool.count; ++k)
                if (!t_.can_write(k) || (alone && t_.ref_.being_written(k)))
                    return;
        } else if (writes && (!t_.can_write(location) || (alone && t_.ref_.being_written(location)))) {
            if (past_caches)
                return;
            kind = AccessKind::load;
        }
        const bool can_hit = !past_caches && kind != AccessKind::flush && kind != AccessKind::uncached_load;
        if (inline_allowed && t_.p_.inline_hits && can_hit && rng_.below(4) == 0 && inline_hit(kind, location, now))
            return;
        issue(kind, location, whole, past_caches, now);
    }

    void issue(AccessKind kind, unsigned location, bool whole, bool past_caches, Tick now) {
        const unsigned i = static_cast<unsigned>(__builtin_ctz(idle_));
        idle_ &= ~(1u << i);
        Op &o = ops_[i];
        const Location &l = t_.ref_.at(location);
        o.line = l.line;
        o.location = location;
        o.whole_line = whole;
        Access &a = o.access;
        a.kind = kind;
        a.addr = PhysAddr(whole || kind == AccessKind::flush ? line_of(l.addr) : l.addr);
        a.size = whole || kind == AccessKind::flush ? kLineBytes : l.size;
        a.data = kind == AccessKind::rmw || kind == AccessKind::flush ? nullptr : o.bytes.data();
        if (whole) {
            o.bytes.fill(std::byte{0});
            const auto &pool = t_.ref_.lines()[o.line];
            for (unsigned k = pool.first; k < pool.first + pool.count; ++k) {
                const Location &w = t_.ref_.at(k);
                put(&o.bytes[line_offset(w.addr)], t_.ref_.begin_write(k, who_, kind, now, true), w.size);
            }
        } else if (past_caches || kind == AccessKind::store || kind == AccessKind::rmw) {
            o.value = t_.ref_.begin_write(location, who_, kind, now, past_caches);
            put(o.bytes.data(), o.value, l.size);
        }
        count(kind);
        if (device_)
            ++t_.line_in_device_[l.line];
        if (t_.recording_) {
            a.txn = 0;
            o.number = static_cast<int>(t_.recorded_.size());
            t_.recorded_.push_back({who_, kind, a.size, a.addr.value, now});
        }
        port_.issue(a, now);
    }

    void count(AccessKind kind) {
        ++t_.counts_.issued;
        ++t_.counts_.by_kind[static_cast<unsigned>(kind)];
        if (device_)
            ++(kind == AccessKind::load ? t_.counts_.device_reads : t_.counts_.device_writes);
    }

    /// Makes the whole access at this moment, if the memory system grants an inline hit.
    bool inline_hit(AccessKind kind, unsigned location, Tick now) {
        const Location &l = t_.ref_.at(location);
        const Addr line = line_of(l.addr);
        const Tick when = port_.hit_done(now);
        const bool reads = kind == AccessKind::load || kind == AccessKind::fetch;
        std::byte *b = kind == AccessKind::fetch ? port_.fetch_hit(line, when) ? port_.fetched(line) : nullptr
                                                 : port_.hit(line, reads ? Port::right_load : Port::right_store, when);
        if (!b)
            b = port_.probe(kind, line, when);
        if (!b)
            return false;
        b += line_offset(l.addr);
        count(kind);
        ++t_.counts_.inline_hits;
        ++t_.counts_.finished;
        if (reads) {
            check(location, Reference::get(b, l.size), kind, now, now);
        } else {
            const std::uint64_t v = t_.ref_.begin_write(location, who_, kind, now, false);
            if (kind == AccessKind::rmw)
                check_swap(location, Reference::get(b, l.size), now, now);
            put(b, v, l.size);
            t_.ref_.complete_write(location, v, now);
        }
        return true;
    }

    void check(unsigned location, std::uint64_t found, AccessKind kind, Tick issued, Tick done) {
        ++t_.counts_.checked_loads;
        if (!t_.ref_.load_ok(location, found, issued, done)) [[unlikely]]
            t_.wrong_value(location, t_.ref_.explain(location, found, who_, kind, issued, done));
    }
    void check_swap(unsigned location, std::uint64_t found, Tick issued, Tick now) {
        if (!t_.ref_.may_be_current(location, found, now)) [[unlikely]]
            t_.wrong_value(location, t_.ref_.explain(location, found, who_, AccessKind::rmw, issued, now));
    }
    void swap(Op &o, void *bytes) {
        const unsigned size = t_.ref_.at(o.location).size;
        check_swap(o.location, Reference::get(bytes, size), o.access.issued, queue().now());
        put(bytes, o.value, size);
    }

    void done(Access &a) {
        Op &o = *static_cast<Op *>(a.rmw_context);
        const Tick now = a.done;
        if (t_.on_done && a.txn)
            t_.on_done(a.txn, o.number);
        switch (a.kind) {
        case AccessKind::load:
        case AccessKind::uncached_load:
        case AccessKind::fetch: check(o.location, Reference::get(o.bytes.data(), a.size), a.kind, a.issued, now); break;
        case AccessKind::flush: break;
        default:
            if (o.whole_line) {
                const auto &pool = t_.ref_.lines()[o.line];
                for (unsigned k = pool.first; k < pool.first + pool.count; ++k) {
                    const Location &w = t_.ref_.at(k);
                    t_.ref_.complete_write(k, Reference::get(&o.bytes[line_offset(w.addr)], w.size), now);
                }
            } else {
                t_.ref_.complete_write(o.location, o.value, now);
            }
        }
        if (device_)
            --t_.line_in_device_[o.line];
        idle_ |= 1u << (&o - ops_.data());
        ++t_.counts_.finished;
        // Half of the time the next access follows at once, otherwise after a pause.
        if (!device_ && t_.may_issue() && rng_.below(2) == 0)
            try_issue(now, false);
        if (idle_)
            again(now);
    }

    RandomTester &t_;
    Port &port_;
    Rng rng_;
    Agent who_;
    bool device_;
    ClockCursor cursor_;
    unsigned last_line_ = 0;
    unsigned idle_ = 0, all_idle_ = 0; ///< bit per op
    std::array<Op, kMostInFlight> ops_;
};

RandomTester::RandomTester(EventQueue &queue, const std::vector<Port *> &cores, const std::vector<Port *> &devices,
                           const std::vector<Addr> &lines, RandomTesterParams params)
    : p_(params),
      queue_(queue),
      rng_(params.seed),
      ref_(lines, params.locations_per_line, rng_),
      line_in_device_(lines.size()) {
    for (unsigned i = 0; i < cores.size(); ++i)
        issuers_.push_back(std::make_unique<Issuer>(*this, queue, *cores[i], static_cast<Agent>(i), rng_.next()));
    for (unsigned i = 0; i < devices.size(); ++i)
        issuers_.push_back(
            std::make_unique<Issuer>(*this, queue, *devices[i], static_cast<Agent>(kFirstDevice + i), rng_.next()));
}

RandomTester::~RandomTester() = default;

void RandomTester::start(Tick t) {
    for (auto &i : issuers_)
        i->schedule(t);
}

bool RandomTester::finished() const {
    if (may_issue())
        return false;
    for (const auto &i : issuers_)
        if (!i->idle())
            return false;
    return true;
}

unsigned RandomTester::pick_line(Rng &rng) {
    const auto n = ref_.lines().size();
    if (counts_.issued >= next_change_) {
        next_change_ = counts_.issued + kOpsPerHotSet;
        hot_.resize(std::max(p_.hot_lines, 1u));
        for (auto &h : hot_)
            h = static_cast<unsigned>(rng_.below(n));
    }
    return rng.below(2) ? hot_[rng.below(hot_.size())] : static_cast<unsigned>(rng.below(n));
}

Tick RandomTester::oldest() const {
    Tick t = queue_.now();
    for (const auto &i : issuers_)
        t = std::min(t, i->oldest());
    return t;
}

bool RandomTester::can_write(unsigned location) {
    if (ref_.can_write(location, known_oldest_))
        return true;
    known_oldest_ = oldest();
    return ref_.can_write(location, known_oldest_);
}

int RandomTester::number_of(TxnId txn) const {
    for (const auto &i : issuers_)
        if (const int n = i->number_of(txn); n >= 0)
            return n;
    return -1;
}

void RandomTester::violation(std::string text) {
    ++counts_.violations;
    if (violations_.size() < p_.max_violations)
        violations_.push_back(std::move(text));
}

void RandomTester::wrong_value(unsigned location, std::string text) {
    if (context && violations_.size() < p_.max_violations)
        text += context(line_of(ref_.at(location).addr));
    violation(std::move(text));
}

void RandomTester::check_final(unsigned line, const std::byte *bytes) {
    const auto &pool = ref_.lines()[line];
    for (unsigned k = pool.first; k < pool.first + pool.count; ++k) {
        const Location &l = ref_.at(k);
        const std::uint64_t v = Reference::get(bytes + line_offset(l.addr), l.size);
        if (!ref_.may_be_current(k, v, queue_.now()))
            violation(ref_.explain_final(k, v));
    }
}

} // namespace moscope::testers
