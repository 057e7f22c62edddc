// SPDX-License-Identifier: BSD-3-Clause
// Between a core's port and the protocol's first-level controller: SLICC's Sequencer. One request per line is
// in the protocol at a time; further accesses to the line wait and are served by the same grant where it
// suffices, or start a request of their own. Bytes move at the moment of the protocol's callback.
#pragma once

#include <array>
#include <memory>
#include <span>
#include <vector>

#include "mem/port.hh"
#include "mem/ruby/runtime/controller.hh"
#include "mem/ruby/runtime/prefetch/l1_prefetcher.hh"
#include "mem/ruby/runtime/requests.hh"
#include "mem/what_if.hh"

namespace moscope::ruby {

class Sequencer {
  public:
    struct Params {
        int hit_latency = 3; ///< cycles from issue until the first-level cache answers (the mandatory queue)
        RubyRequestType nt_store_type = RubyRequestType_ST;
        RubyRequestType uncached_load_type = RubyRequestType_NULL; ///< NULL: the protocol has none
        bool flushes = false;                                      ///< the protocol has an event for it
        std::uint16_t core = 0;                                    ///< whose accesses these are
    };

    /// guest_memory: base of the backing store, addressed by physical address.
    Sequencer(Params p, AbstractController &c, MessageBuffer &mandatory, std::byte *guest_memory, bool checks_data);

    Port &port() { return port_; }
    AbstractController &controller() { return c_; }
    /// From now on, accesses to the lines in `lines` are treated as it says. No access may be in flight.
    void treat_otherwise(const WhatIf *lines) {
        what_if_ = lines;
        port_.line_ = [](void *self, Addr at) { return static_cast<Sequencer *>(self)->protocol_line(at); };
        port_.forget_all();
    }

    // ---- prefetching
    void use_prefetcher(const L1Prefetcher::Params &params) {
        (params.level == PrefetchLevel::l1i ? l1i_ : l1d_) = std::make_unique<L1Prefetcher>(*this, params);
        port_.prefetches_ = &prefetches;
    }
    /// The prefetcher of the L1 cache that serves accesses of kind k; null: there is none.
    L1Prefetcher *prefetcher(AccessKind k) const {
        if (__builtin_expect(!port_.prefetches_, 1))
            return nullptr;
        return (k == AccessKind::fetch ? l1i_ : l1d_).get();
    }
    unsigned prefetches = 0; ///< under way
    /// Sends a prefetch at its tick of issue, which is the core's present one.
    void prefetch(Access &a);
    unsigned lines_in_flight() const { return port_.lines_in_flight_; }
    bool goes_other_ways(Addr line) const { return what_if_ && what_if_->way(line).other; }

    // ---- called by protocols
    template <class D> void readCallback(Addr a, const D &d, bool external = false) {
        complete(a, d.bytes(), false, external, MachineType_NULL);
    }
    template <class D>
    void readCallback(Addr a, const D &d, bool external, MachineType m, std::int64_t = 0, std::int64_t = 0,
                      std::int64_t = 0) {
        complete(a, d.bytes(), false, external, m);
    }
    template <class D> void writeCallback(Addr a, D &d, bool external = false) {
        complete(a, d.bytes(), true, external, MachineType_NULL);
    }
    template <class D>
    void writeCallback(Addr a, D &d, bool external, MachineType m, std::int64_t = 0, std::int64_t = 0,
                       std::int64_t = 0) {
        complete(a, d.bytes(), true, external, m);
    }
    template <class D> void writeUniqueCallback(Addr a, D &d) { writeCallback(a, d); }
    template <class D, class... R> void atomicCallback(Addr a, D &d, R...) { writeCallback(a, d); }
    void unaddressedCallback(Addr, RubyRequestType, MachineType = MachineType_NULL, std::int64_t = 0, std::int64_t = 0,
                             std::int64_t = 0) {}
    template <class D> void writeCallbackScFail(Addr a, D &d) { writeCallback(a, d); }
    bool llscCheckMonitor(Addr) { return true; }
    void llscClearLocalMonitor() {}
    void evictionCallback(Addr a) { port_.forget(line_of(a)); }
    void invL1Callback() {}
    /// Of hardware transactions, which no core begins.
    void htmCallback(Addr a, HtmCallbackMode, HtmFailedInCacheReason) {
        throw ProtocolError("htmCallback: no core has begun a hardware transaction", line_of(a));
    }
    void recordRequestType(SequencerRequestType) {}
    bool checkResourceAvailable(CacheResourceType, Addr) { return true; }

    // ---- called by controllers that work for an access of this core
    struct Sender {
        std::uint8_t type; ///< MachineType
        std::uint8_t state;
        std::uint16_t from_memory; ///< 1: a home that asked DRAM; the answer of another sender may come first
        std::uint16_t number, chip;
    };
    static_assert(sizeof(Sender) == 8); // it fits into a message to another process
    void sent_line(Addr line, TxnId txn, Sender by);
    void sent_probes(Addr line, TxnId txn, unsigned to);

    // ---- for the machine
    unsigned outstanding() const { return in_flight_; }
    /// Issue tick of the oldest access in flight; kNever if none.
    Tick oldest() const;
    /// Calls f(const Access &) for every access in flight.
    template <class F> void for_each(F &&f) const {
        for (const Line &l : lines())
            for (const Access *a = l.head; a; a = a->next)
                f(*a);
    }
    bool busy(Addr line) const {
        for (const Line &l : lines())
            if (l.line == line)
                return true;
        return false;
    }
    /// Accesses finished through the protocol, and their latencies by segment.
    std::uint64_t finished = 0;
    Tick latency_sum = 0;
    PathTimes path_sum;

  private:
    struct Line {
        Addr line;
        Access *head;
        Access *tail;
        /// Senders of the line for the access at the head: the last one of each kind of controller; the first
        /// senders_known are valid.
        std::array<Sender, 4> senders;
        std::uint8_t senders_known;
        std::uint16_t probes;
        void begin(Addr of, Access *first, Access *last) {
            line = of;
            head = first;
            tail = last;
            senders_known = 0;
            probes = 0;
        }
        void tell(Access &a, MachineType supplier) const;
    };
    std::span<Line> lines() { return {lines_.data(), port_.lines_in_flight_}; }
    std::span<const Line> lines() const { return {lines_.data(), port_.lines_in_flight_}; }
    [[gnu::noinline]] void make_room() { lines_.resize(2 * lines_.size()); }

    static void issue_entry(void *self, Access &a) { static_cast<Sequencer *>(self)->issue(a); }
    static std::byte *probe_entry(void *self, Port &, AccessKind k, Addr at, Tick when) {
        return static_cast<Sequencer *>(self)->probe(k, at, when);
    }
    static bool quiet_entry(void *self) {
        const auto *s = static_cast<const Sequencer *>(self);
        return s->c_.tbes_in_use() == 0;
    }
    static Tick used_before_entry(void *self) {
        const auto *s = static_cast<const Sequencer *>(self);
        return s->c_.edge_from(s->c_.queue().now(), s->p_.hit_latency);
    }
    static Tick hit_done_entry(void *self, Tick now) {
        auto *s = static_cast<Sequencer *>(self);
        return s->c_.edge_from(now, s->p_.hit_latency);
    }

    void issue(Access &a);
    /// Sends `a` (null), or makes it wait behind another access to its line, which it returns.
    const Access *enter(Access &a);
    void start(Access &a, Addr line, Tick now);
    [[gnu::noinline]] void start_again(Access &a, Tick now) { start(a, protocol_line(a.addr.value), now); }
    std::byte *probe(AccessKind k, Addr at, Tick when);
    std::byte *probe_otherwise(const WhatIf::Way &way, AccessKind k, Addr at, Tick when);
    /// The line that the protocol sees for an access at this address.
    Addr protocol_line(Addr at) const {
        return __builtin_expect(what_if_ != nullptr, 0) ? what_if_->way(at).line : line_of(at);
    }
    [[noreturn, gnu::cold, gnu::noinline]] void wrong_callback(const char *what, Addr line, const char *why) const;
    void complete(Addr a, const std::byte *bytes, bool write, bool external, MachineType supplier);
    void finish(Access &a, std::byte *carried, bool first, MachineType supplier);
    [[gnu::noinline]] void finish_others(Access *first, std::byte *carried, MachineType supplier);
    Line *in_flight(Addr line, TxnId txn);
    /// NULL: the protocol has none.
    RubyRequestType type_of(AccessKind k) const { return types_[static_cast<unsigned>(k)]; }
    [[noreturn, gnu::cold, gnu::noinline]] void lacks_type(AccessKind) const;

    Params p_;
    AbstractController &c_;
    MessageBuffer &mandatory_;
    std::byte *memory_;
    bool checks_data_;
    Port port_;
    /// Lines with accesses in flight, which are few: the first port_.lines_in_flight_ elements.
    std::vector<Line> lines_ = std::vector<Line>(64);
    std::array<RubyRequestType, 8> types_{}; ///< by AccessKind
    unsigned in_flight_ = 0;
    TxnId last_txn_;
    const WhatIf *what_if_ = nullptr;
    std::unique_ptr<L1Prefetcher> l1d_, l1i_; ///< null: none
};

inline void AbstractController::before_change(Addr line) {
    if (sequencer_)
        sequencer_->port().before_change(line_of(line));
}

inline void AbstractController::forget_line(Addr line) {
    if (sequencer_)
        sequencer_->port().forget(line_of(line));
}

} // namespace moscope::ruby
