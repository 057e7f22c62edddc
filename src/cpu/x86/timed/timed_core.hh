// SPDX-License-Identifier: BSD-3-Clause
// A core in detailed mode: the instruction functions of functional mode, on a fiber of their own, with every access
// through the memory port and a clock that advances as an in-order pipeline would: up to `width` operations issue in a
// cycle, an operation waits for its sources (stall on use), a load that misses waits until its value is bound. Stores
// retire into a buffer that drains in order (x86-TSO); loads read from it what they find whole there; fences, locked
// and serializing instructions and device registers wait until it is empty. Every tick is charged once, to busy, idle,
// core (waiting for own results, long operations, device registers) or memory.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <utility>

#include "cpu/fiber_core.hh"
#include "cpu/x86/core.hh"
#include "cpu/x86/decode/block.hh"
#include "cpu/x86/timed/l1_tlb.hh"
#include "cpu/x86/timed/op_timing.hh"
#include "cpu/x86/timed/polling.hh"
#include "cpu/x86/timed/spin.hh"
#include "cpu/x86/timed/store_buffer.hh"
#include "cpu/x86/timed/timed_params.hh"
#include "cpu/x86/timed/write_combiner.hh"

namespace moscope::x86 {

/// A finished transaction beyond the first-level cache, as attribution sees it.
struct Transaction {
    const Access *access;
    unsigned core;
    Addr pc;      ///< instruction
    Addr va;      ///< of a walk or a fetch 0
    Tick exposed; ///< stall charged to it
    bool walk;
    bool user;
    Addr address_space; ///< CR3
    /// A wait for an access out of a buffer, which itself was told of before: room, or a drain.
    bool wait = false;
};

/// Time in a loop around a PAUSE, on the line that was waited for.
struct Spin {
    unsigned core;
    Polling::Look look;
    Tick time;
    std::uint64_t turns;
};

/// Told of transactions, of time in spin loops, and of all stores (system/attribution).
class TransactionObserver {
  public:
    virtual ~TransactionObserver() = default;
    virtual void transaction(const Transaction &) = 0;
    virtual void spun(const Spin &) = 0;
    /// A store or locked operation of a core, as it is performed; if it took a transaction, after that was told of.
    virtual void stored(unsigned core, Addr dram, unsigned size, Addr pc) = 0;
    /// A transaction has begun that a core waits for, and will be told of.
    virtual void expected(Addr dram) = 0;
};

class TimedCore;

/// Locked operations on two lines are rare and exclude each other: each needs both lines at one moment, and two that take
/// turns at losing one would never end. The processor locks the whole machine for them (AMD 24593, section 7.3.2).
struct SplitLock {
    const TimedCore *holder = nullptr;
};

class TimedCore final : public FiberCore {
  public:
    using Charge = TimeKind;

    TimedCore(EventQueue &queue, Port &port, Core &core, const TimedParams &params);

    /// Takes over the core at tick t; its functional run has ended between two instructions.
    void take_over(Tick t);
    /// Asks the core to leave detailed mode at its next instruction boundary, with its buffer empty.
    void ask_to_leave() {
        leaving_ = true;
        if (waiting_idle_ || dozing())
            schedule_no_later_than(queue().now());
    }
    bool left() const { return left_; }

    /// The core's clock in cycles.
    std::uint64_t cycles() const { return static_cast<std::uint64_t>(cursor().cycle()); }
    Tick spent(Charge c, bool user) const { return spent_[user][static_cast<unsigned>(c)]; }
    Tick spent(Charge c) const { return spent(c, false) + spent(c, true); }
    /// What of busy and core was in spin loops.
    Tick spun(Charge c, bool user) const { return polling_.spent()[c == Charge::core][user]; }
    /// Charges begin anew at the core's own moment, not before `now`.
    void reset_charges(Tick now);
    /// Ticks since then, which the charges add up to exactly.
    Tick window() const { return stamp_ - since_; }
    /// Memory stall that settle() charged to the transaction under way, whose end will report it.
    Tick unreported() const { return unreported_; }
    /// Brings the charges up to tick t (a core that waits has not charged its wait yet), and tells the observer all spinning.
    void settle(Tick t);

    /// A core that sleeps in a spin loop is brought up to tick t, before which everything has happened.
    void wake_from_doze(Tick t) {
        if (dozing())
            resume_dozing(t);
    }
    bool dozing() const { return port_.dozing_ == this; }

    /// The local APIC raised a signal at tick t, which is the queue's moment or before.
    void signalled(Tick t);
    /// Where each chip has a queue of its own, what chips share is touched while none of them runs: called with a core that then
    /// waits for resume_aside(), by which time everything before its moment has happened. Empty: there is one queue.
    std::function<void(TimedCore &)> aside;

    // --- memory, for cpu/x86/mmu/memory.cc and paging.cc: DRAM only, within a page
    void load(PhysAddr, void *to, unsigned size);
    void store(PhysAddr, const void *from, unsigned size);
    void modify(PhysAddr, unsigned size, void (*f)(void *, void *), void *context, bool locked);
    /// The same for a DRAM address, within a line.
    void load_line(Addr dram, void *to, unsigned size);
    void store_line(Addr dram, const void *from, unsigned size);
    void walk_load(PhysAddr a, void *to, unsigned size) {
        walking_ = true;
        load(a, to, size);
        walking_ = false;
    }
    /// The walker's update of an entry.
    void walk_modify(PhysAddr a, unsigned size, void (*f)(void *, void *), void *context) {
        walking_ = true;
        modify(a, size, f, context, true);
        walking_ = false;
    }
    /// Before a device register is touched: everything before has happened, everywhere.
    void settle_before_device();
    /// After it: what the access cost.
    void device_cost(std::uint64_t cycles);
    /// After a store to what somebody has decoded: everything before has happened, everywhere, and nobody runs what was there. A
    /// processor, too, empties its pipeline then (AMD 24593, section 7.6.1, self-modifying and cross-modifying code).
    void wrote_code(PhysAddr, unsigned size);
    /// Until the store buffer is empty.
    void fence();
    /// A data access to a page (its address shifted by its size): what the first-level TLB adds.
    void l1_tlb(std::uint64_t page) {
        if (!l1_tlb_.access(page))
            tlb_miss();
    }
    /// The linear address that the coming accesses belong to.
    void at_linear(Addr va) { va_ = va; }

    TransactionObserver *observer = nullptr;
    SplitLock *split_lock = nullptr; ///< all cores' one; set before the first split access
    /// Told of a shutdown or of an instruction that the model lacks, before the run stops.
    std::function<void(Exit)> on_death = [](Exit) {};

  private:
    void body() override;
    void completed(const Access &) override {}
    void run_block(Block &b);
    /// The run stops here: false: for good.
    bool ended(Exit why);
    void take_split_lock();
    void step_aside();
    void rejoin();
    void modify_split(Addr dram, unsigned size, void (*f)(void *, void *), void *context);
    void fetch(Addr line);
    void issue(const OpTiming &t);
    void next_cycle();
    void tlb_miss();
    void charge(Charge c) {
        spent_[user_][static_cast<unsigned>(c)] += now() - stamp_;
        stamp_ = now();
        spin_.charged(cursor().cycle(), static_cast<std::uint8_t>(c));
    }
    void wait_idle();
    bool watches_line();
    void turn_of_spin_loop();
    void spend_turns(std::int64_t n);
    Polling::Times spent_outside_memory() const {
        constexpr auto busy = static_cast<unsigned>(Charge::busy), core = static_cast<unsigned>(Charge::core);
        return {{{spent_[0][busy], spent_[1][busy]}, {spent_[0][core], spent_[1][core]}}};
    }
    void tell_spinning(const Polling::Look &look, Tick time, std::uint64_t turns) {
        if (observer)
            observer->spun({c_.number, look, time, turns});
    }
    void tell_all_spinning() {
        polling_.told([this](auto &&...spin) { tell_spinning(spin...); });
    }
    void looks_at(Addr dram) {
        if (__builtin_expect(polling_.attends(), 0) && !walking_)
            polling_.looked({dram, pc_, va_, c_.cr3, user_});
    }
    void transact(AccessKind kind, PhysAddr a, void *data, unsigned size);
    /// The line's bytes if the core may write them now, without a transaction; or null.
    std::byte *writable(Addr line) {
        std::byte *b = port_.hit(line, Port::right_store, now());
        return b ? b : port_.probe(AccessKind::store, line, now());
    }
    void store_around(Addr dram, const void *from, unsigned size);
    /// Sends what was collected and, if wanted, waits until it has arrived.
    void drain_combiner(bool arrived);
    void fence_stores();
    /// The stall since the last charge, with what settle() has charged of it already.
    Tick stalled() { return now() - stamp_ + std::exchange(unreported_, 0); }
    /// Charges the stall to an access that the core has waited for by itself, which has ended.
    void report(const Access &x);
    /// An access out of a buffer has ended.
    void report_store(const Access &x, Tick exposed = 0, bool wait = false);
    void tell_stored(Addr dram, unsigned size, Addr pc) {
        if (observer)
            observer->stored(c_.number, dram, size, pc);
    }
    void wait_memory(Access &x);
    template <class F> void wait_for_stores(F &&until) { wait_for_buffer(waiting_stores_, until); }
    template <class F> void wait_for_combiner(F &&until) { wait_for_buffer(waiting_combiner_, until); }
    template <class F> void wait_for_buffer(bool &waiting, F &&until) {
        if (until())
            return;
        ++disturbances_;
        charge(Charge::busy);
        do
            wait_for_departure(waiting);
        while (!until());
        slot_ = 0;
        charge(Charge::core); // the moment at which a store retires, if that was all
    }
    void wait_for_departure(bool &waiting);
    /// Something has left the buffer that the core waits for; x: the access that let it, null: none was needed.
    void departed(const Access *x, Tick t);
    Addr dram(PhysAddr a) const { return c_.phys.dram_address(a); }

    // What most instructions touch lies together: after a switch from another core's fiber each host line of it is fetched anew.
    Core &c_;
    Tick stamp_ = 0;
    const Op *op_ = nullptr; ///< that runs
    Addr pc_ = 0, va_ = 0;
    Addr fetch_line_ = ~Addr{0};
    std::uint64_t disturbances_ = 0; ///< what a turn of a spin loop that may be left out does not do
    unsigned slot_ = 0, accesses_ = 0;
    bool user_ = false; ///< charges go to user time
    bool waiting_memory_ = false;
    bool waiting_idle_ = false, waiting_stores_ = false, waiting_combiner_ = false, walking_ = false, leaving_ = false,
         left_ = true;
    const TimedParams params_;
    std::array<std::array<Tick, static_cast<unsigned>(Charge::count)>, 2> spent_{}; ///< kernel, user
    // The scoreboard, in cycles.
    RegMask pending_ = 0;
    std::int64_t load_ready_ = 0;
    std::array<std::int64_t, 34> ready_{};
    StoreBuffer stores_;
    L1Tlb l1_tlb_;
    SpinLoop spin_;
    Polling polling_;
    WriteCombiner combiner_;

    Tick since_ = 0, unreported_ = 0;
    static constexpr std::int64_t kNeverFetches = std::int64_t{1} << 32;
    std::uint64_t spun_ = 0; ///< c_.spun at the last PAUSE
    Tick awake_until_ =
        0; ///< a core that was woken from its doze comes to this moment, and the queue passes it, before the next
    Access departed_; ///< the first that ended since the core began to wait for a buffer, or last looked
    bool has_departed_ = false;
    struct Watch { ///< what the port wakes while an MWAIT lasts; a core that dozes in a spin loop is another thing
        TimedCore *core;
    } watch_{this};
    Tick visible_ = 0; ///< from here on the core notices its signals
};

} // namespace moscope::x86
