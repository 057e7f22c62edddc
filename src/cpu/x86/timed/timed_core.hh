// SPDX-License-Identifier: BSD-3-Clause
// A core in detailed mode: it runs the instruction functions of functional mode on a fiber of its own. Every data
// access goes through the memory port. Unless the core overlaps misses (overlap.hh), its clock advances as in an
// in-order pipeline: `width` operations issue in a cycle, each waits for sources that take longer than a cycle, and a
// load that misses waits until its value is bound. Stores retire into a buffer that drains in order (x86-TSO). A load
// takes its bytes from a buffered store that covers it. MFENCE, locked and serializing instructions and device accesses
// wait until the buffer is empty; so does SFENCE if non-temporal stores are under way. Every tick is charged once: to
// busy, idle, core (own results, long operations, device accesses) or memory.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <utility>

#include "cpu/fiber_core.hh"
#include "cpu/x86/core.hh"
#include "cpu/x86/decode/block.hh"
#include "cpu/x86/mmu/word.hh"
#include "cpu/x86/timed/l1_tlb.hh"
#include "cpu/x86/timed/op_timing.hh"
#include "cpu/x86/timed/overlap.hh"
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
    Addr va;      ///< 0 for a page walk or a fetch
    Tick exposed; ///< stall charged to it
    bool walk;
    bool user;
    Addr address_space; ///< CR3
    /// A wait for room in a buffer or for its drain. The access itself was reported before.
    bool wait = false;
};

/// Time in a spin loop (PAUSE), and the line that was polled.
struct Spin {
    unsigned core;
    Polling::Look look;
    Tick time;
    std::uint64_t iterations;
};

/// Receives transactions, time in spin loops, and all stores (src/attribution).
class TransactionObserver {
  public:
    virtual ~TransactionObserver() = default;
    virtual void transaction(const Transaction &) = 0;
    virtual void spun(const Spin &) = 0;
    /// A store or locked operation of a core is performed; after the report of its transaction, if it took one.
    virtual void stored(unsigned core, Addr dram, unsigned size, Addr pc) = 0;
    /// A transaction that a core waits for has begun; transaction() reports its end.
    virtual void expected(Addr dram) = 0;
    /// The core's prefetcher has brought a line. No transaction reports it.
    virtual void prefetched(unsigned core, Addr dram) = 0;
};

class TimedCore;

/// Locked operations on two lines are rare and exclude each other. Each needs both lines at the same time; two of them
/// could take one line from each other for ever. The processor locks the whole machine for them (AMD 24593,
/// section 7.3.2).
struct SplitLock {
    const TimedCore *holder = nullptr;
};

class TimedCore final : public FiberCore {
  public:
    using Charge = TimeKind;

    TimedCore(EventQueue &queue, Port &port, Core &core, const TimedParams &params);

    /// Takes over the core at tick t, between two instructions of functional mode.
    void take_over(Tick t);
    /// Asks the core to leave detailed mode at its next instruction boundary, with its buffer empty.
    void ask_to_leave() {
        after_block_ |= kLeaves;
        if (waiting_idle_ || asleep())
            schedule_no_later_than(queue().now());
    }
    bool left() const { return left_; }

    /// The core's clock in cycles.
    std::uint64_t cycles() const { return static_cast<std::uint64_t>(cursor().cycle()); }
    Tick spent(Charge c, bool user) const { return spent_[user][static_cast<unsigned>(c)]; }
    Tick spent(Charge c) const { return spent(c, false) + spent(c, true); }
    /// The portion of busy and core time in spin loops.
    Tick spun(Charge c, bool user) const { return polling_.spent()[c == Charge::core][user]; }
    /// Resets the charges at the core's own tick, not before `now`.
    void reset_charges(Tick now);
    /// Length of the measurement window so far: ticks since the reset. The charges add up to it exactly.
    Tick window() const { return stamp_ - since_; }
    /// Memory stall that settle() has charged to the transaction in flight; the end of the transaction reports it.
    Tick unreported() const { return unreported_; }
    /// Brings the charges up to tick t (a waiting core has not charged its wait yet), and reports all time in spin
    /// loops.
    void settle(Tick t);

    /// Brings a core that sleeps in a spin loop up to tick t. All events before t have happened.
    void wake_sleeper(Tick t) {
        if (asleep())
            resume_sleeper(t);
    }
    bool asleep() const { return port_.sleeping_ == this; }

    /// The local APIC raised a signal at tick t, which is not after the queue's present tick.
    void signalled(Tick t);

    // --- memory, for cpu/x86/mmu/memory.cc and paging.cc: DRAM only, within a page
    void load(PhysAddr, void *to, unsigned size);
    void store(PhysAddr, const void *from, unsigned size);
    void modify(PhysAddr, unsigned size, void (*f)(void *, void *), void *context, bool locked);
    /// A locked access to the end of one page and the beginning of another.
    void modify_across(const PhysAddr (&)[2], const unsigned (&size)[2], void (*f)(void *, void *), void *context);
    /// load() and store() for a DRAM address, within a line.
    void load_line(Addr dram, void *to, unsigned size);
    void store_line(Addr dram, const void *from, unsigned size);
    /// The page walker's load of a page-table entry.
    template <class T> T walk_load(Addr dram);
    /// The page walker's update of an entry.
    void walk_modify(PhysAddr a, unsigned size, void (*f)(void *, void *), void *context) {
        walking_ = true;
        modify(a, size, f, context, true);
        walking_ = false;
    }
    /// CLFLUSH of the line there. Nothing happens if the protocol has no flush.
    void flush(PhysAddr);
    /// A software prefetch of the line at this linear address. It has no effect in the blocking model, or without a
    /// translation in the TLB.
    void prefetch(Addr va, bool write, bool user) {
        if (overlap_)
            overlap_->prefetch(va, write, user);
    }
    /// To be called before an access to a device register: waits until the store buffer is empty and all earlier events
    /// have happened.
    void begin_device_access();
    /// To be called after the access, with the cycles that it takes.
    void end_device_access(std::uint64_t cycles);
    /// After a store to decoded code: all earlier events are drained, then the decoded blocks are invalidated on every
    /// core. The processor also empties its pipeline then (AMD 24593, section 7.6.1, self-modifying and cross-modifying
    /// code).
    void wrote_code(PhysAddr, unsigned size);
    /// Whether the instruction's store, to a page that TLBs allow to be written directly, can take the short path of
    /// store_sized().
    bool stores_soon() const { return !op_->non_temporal && !*code_news_ && (!buffers_ || combiner_.idle()); }
    /// The same, and whether it waits in no buffer.
    bool stores_at_once() const { return !op_->non_temporal && !*code_news_ && !buffers_; }
    /// The short path of an instruction's load or store, for most hits: within a line, at `d` in DRAM, in a page that
    /// the first-level TLB holds. kAtOnce: stores_at_once() holds. Both always succeed.
    template <unsigned kBytes> LoadedWord<kBytes> load_sized(Addr d, Addr va);
    template <unsigned kBytes, bool kAtOnce = false> bool store_sized(Addr d, Addr va, Word<kBytes> word);
    /// Of an instruction's `n` adjacent stores of the same bytes, makes those that lie in the first line: if they hit,
    /// or, if older stores wait in the buffer, as many as it has room for. Returns how many it made; 0: nothing has
    /// happened.
    template <unsigned kBytes> std::uint64_t store_several(Addr d, Addr va, const void *from, std::uint64_t n);
    /// Waits until all stores are performed.
    void fence();
    void store_fence() {
        if (!combiner_.idle())
            fence();
    }
    /// A data access to a page (its address shifted right by log2 of its size): a miss in the first-level TLB adds its
    /// cost.
    void l1_tlb(std::uint64_t page, bool global) {
        if (!l1_tlb_.access(page, global))
            tlb_miss();
    }
    L1Tlb &l1_tlb() { return l1_tlb_; }
    /// Sets the linear address of the accesses that follow.
    void at_linear(Addr va) { va_ = va; }
    /// Not null: the core is looking ahead, and the instruction that runs does not take effect.
    Overlap *looks_ahead() const { return looks_ahead_; }

    /// The instruction that runs, or the one to look up next.
    Addr pc() const { return in_block_ ? c_.address_of(op_) : pc_; }
    /// The decoded blocks of a page have been dropped, with one logical process or in a serial phase. A core that
    /// sleeps in a spin loop may be in one of these blocks, so it wakes.
    void code_dropped() {
        fetch_line_ = ~Addr{0};
        if (asleep())
            schedule_no_later_than(processes->earliest_on(queue(), queue().now()));
    }
    /// Something other than the effect of an instruction happens: an iteration of a spin loop that contains it is not
    /// skipped.
    void disturb() { ++disturbances_; }
    /// Stores that are not in memory yet.
    const StoreBuffer &stores() const { return stores_; }

    TransactionObserver *observer = nullptr;
    LogicalProcesses *processes = &LogicalProcesses::one(); ///< the machine's
    SplitLock *split_lock = nullptr;                        ///< shared by all cores; set before the first split access
    /// Called on a shutdown or on an instruction that the model lacks, before the run stops.
    std::function<void(Exit)> on_death = [](Exit) {};

  private:
    friend class Overlap;

    void body() override { overlap_ ? run<true>() : run<false>(); }
    template <bool kOverlaps> void run();
    void completed(const Access &) override {}
    void run_block(Core &c, Block &b, const OpTiming *timings);
    /// Whether something other than interrupts and breakpoints has to be checked before the next instruction.
    bool attends() const {
        return (c_.shadow | c_.halted | c_.wait_for_sipi) || (c_.flags.system & (Flags::tf | Flags::rf));
    }
    /// Whether attends() may hold, or an interrupt or a breakpoint may be due: one test for all.
    static bool may_attend(const Core &c) {
        return (c.attention() | c.signals.pending | (c.flags.system & (Flags::tf | Flags::rf))) != 0;
    }
    /// Takes pending interrupts and finds the next block, as Core::begin_block does.
    template <bool kOverlaps> Block *begin_block();
    /// Makes a block ready to be run.
    void prepare(Block &);
    template <bool kOverlaps> bool end_block();
    template <bool kRests> bool go_on();
    /// Core::cpl has changed; cpl_ follows it.
    void privilege_changed();
    /// After an instruction that has left its block early.
    void overlapped_exit();
    /// Before an operation that touches registers of `pending`: waits until its sources are ready. Returns the
    /// registers that are pending afterwards.
    RegMask wait_for_sources(const OpTiming &t, RegMask pending);
    /// After an operation that lasts (OpTiming::lasts) or has accessed memory: records when its result is ready.
    /// Returns the registers that are pending afterwards.
    RegMask result_later(const OpTiming &timing, RegMask pending);
    bool leaving() const { return after_block_ & kLeaves; }
    /// Stops the run here. False: the core leaves detailed mode.
    bool ended(Exit why);
    void take_split_lock();
    /// Runs f at the core's tick while all logical processes are at rest and all their earlier events have happened:
    /// for state that chips share.
    template <class F> void serially(F &&f) {
        begin_serial();
        f();
        end_serial();
    }
    void begin_serial();
    void end_serial();
    /// A locked access to the end of one line and the beginning of another.
    void modify_split(const Addr (&dram)[2], const unsigned (&size)[2], void (*f)(void *, void *), void *context);
    /// Fetches a line of code, given by its physical and its DRAM address.
    void fetch(PhysAddr at, Addr line);
    void fetch_slow(Addr line);
    [[gnu::noinline]] bool late_fetch_hit(Addr line, Tick done);
    void fetch_without_slot(Addr line, Tick done);
    void fetch_of(const Block &b, const Op *op);
    /// Makes a load in the present cycle. Returns true.
    bool load_issued(Addr dram, void *to, unsigned size);
    /// The last step of a load: no buffer holds its bytes, and the port has no slot for its line.
    void load_beyond(Addr dram, void *to, unsigned size);
    /// The steps of load_sized(): with checks of polling and buffers; without them; through the buffers; after catching
    /// up; at the port; and for a line that the port has no slot for.
    template <unsigned kBytes> LoadedWord<kBytes> load_looking(Addr d);
    template <unsigned kBytes> LoadedWord<kBytes> load_plain(Addr d);
    template <unsigned kBytes> LoadedWord<kBytes> load_waiting(Addr d);
    template <unsigned kBytes> LoadedWord<kBytes> load_ahead(Addr d);
    template <unsigned kBytes> LoadedWord<kBytes> load_here(Addr d);
    template <unsigned kBytes> LoadedWord<kBytes> load_elsewhere(Addr d);
    /// Makes a store in the present cycle, of at most the bytes of a buffer entry.
    void store_issued(Addr dram, const void *from, unsigned size);
    /// The same, then checks whether the store was to code that has been decoded by then. Returns true.
    bool store_later(Addr dram, const void *from, unsigned size);
    template <unsigned kBytes> bool store_later(Addr dram, Word<kBytes> word) {
        std::uint8_t bytes[kBytes];
        word.put(bytes);
        return store_later(dram, bytes, kBytes);
    }
    void next_cycle();
    /// An operation issues: in the present cycle, or in the next one if that has no room.
    void take_slot() {
        if (--room_ < 0) {
            next_cycle();
            --room_;
        }
    }
    /// The next operation begins a group: all issue slots are free.
    void begin_group() { room_ = static_cast<int>(params_.issue_width); }
    /// The core stands still for this many cycles, for a reason of its own.
    void stand_still(std::int64_t cycles) {
        charge(Charge::busy);
        advance_cycles(cycles);
        begin_group();
        charge(Charge::core);
    }
    /// The blocking model makes one access of an instruction per cycle; in the overlapping one, the window decides.
    void next_access() {
        if (!overlap_)
            next_cycle();
    }
    void tlb_miss();
    void charge(Charge c) {
        spent_[user_][static_cast<unsigned>(c)] += now() - stamp_;
        stamp_ = now();
        spin_.charged(cursor().cycle(), static_cast<std::uint8_t>(c));
    }
    void wait_idle();
    bool watches_line();
    void spin_loop_iteration();
    void charge_iterations(std::int64_t n);
    Polling::Times spent_outside_memory() const {
        constexpr auto busy = static_cast<unsigned>(Charge::busy), core = static_cast<unsigned>(Charge::core);
        return {{{spent_[0][busy], spent_[1][busy]}, {spent_[0][core], spent_[1][core]}}};
    }
    void report_spinning(const Polling::Look &look, Tick time, std::uint64_t iterations) {
        if (observer)
            observer->spun({c_.number, look, time, iterations});
    }
    void report_all_spinning() {
        polling_.report([this](auto &&...spin) { report_spinning(spin...); });
    }
    void looks_at(Addr dram) {
        if (__builtin_expect(polling_.attends(), 0) && !walking_) {
            polling_.looked({dram, pc(), va_, c_.cr3, user_});
            choose_loads();
        }
    }
    void transact(AccessKind kind, PhysAddr a, void *data, unsigned size);
    /// The bytes of the line if the core may write there without a transaction; else null.
    std::byte *writable(Addr at) {
        std::byte *b = port_.hit(line_of(at), Port::right_store, now());
        return b ? b : port_.probe(AccessKind::store, at, now());
    }
    void store_around(Addr dram, const void *from, unsigned size);
    /// Sends the collected bytes. arrived: waits until they have arrived.
    void drain_combiner(bool arrived);
    void look_at_buffers() {
        buffers_ = !stores_.empty() || !combiner_.idle();
        choose_loads();
    }
    void buffers_filled() { buffers_ = loads_look_ = true; }
    void choose_loads() { loads_look_ = buffers_ || polling_.attends(); }
    void fence_stores();
    /// Before code at this linear address is looked up: performs all buffered stores if one of them is to its page, or
    /// to the next page, in which a block may end. Stores through other linear addresses need a serializing instruction
    /// (AMD 24593, section 7.6.1).
    void see_own_stores(Addr va) {
        for (const Addr page : {va >> 12, (va >> 12) + 1})
            if (stores_.holds_page(page) || combiner_.holds_page(page)) {
                fence();
                return;
            }
    }
    /// A store that has waited in a buffer is performed. Code that was decoded meanwhile does not contain it.
    void left_buffer(Addr dram, unsigned size, Addr pc) {
        if (__builtin_expect(c_.blocks->guarded_dram(c_, dram, size), 0))
            left_buffer_to_code(dram, size, pc);
        else
            report_stored(dram, size, pc);
    }
    [[gnu::noinline]] void left_store_buffer(Tick t, const StoreBuffer::Entry &e, const Access *brought);
    [[gnu::noinline]] void left_buffer_to_code(Addr dram, unsigned size, Addr pc) {
        report_stored(dram, size, pc);
        c_.blocks->written_late(c_, dram, size);
    }
    /// The stall since the last charge, including the part that settle() has charged already.
    Tick stalled() { return now() - stamp_ + std::exchange(unreported_, 0); }
    /// Charges the stall to a finished access that the core issued itself.
    void report(const Access &x);
    /// Reports a finished access of a buffer.
    void report_store(const Access &x, Tick exposed = 0, bool wait = false);
    void report_stored(Addr dram, unsigned size, Addr pc) {
        if (observer)
            observer->stored(c_.number, dram, size, pc);
    }
    void wait_memory(Access &x);
    void walk_load_issued(Addr dram, void *to, unsigned size);
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
        begin_group();
        charge(Charge::core); // if no access ended the wait: until the store retired
    }
    void wait_for_departure(bool &waiting);
    /// An entry has left the buffer for which the core waits. x: the access that this entry needed; null: none.
    void departed(const Access *x, Tick t) {
        if (x)
            note_departed(*x);
        schedule_no_later_than(std::max(t, queue().now()));
    }
    [[gnu::noinline]] void note_departed(const Access &x);
    Addr dram(PhysAddr a) const { return c_.phys.dram_address(a); }

    // Members that most instructions use lie together: after a switch from another core's fiber, the host has to fetch
    // each of their cache lines again.
    Core &c_;
    Tick stamp_ = 0;
    const bool *code_news_ = nullptr; ///< whether stores have to check CodeMap's log of the chip
    const Op *op_ = &kNone;           ///< the running operation
    static const Op kNone;
    Addr pc_ = 0; ///< between blocks: the next instruction, or the one that ended the block
    Addr va_ = 0;
    Addr fetch_line_ = ~Addr{0}; ///< physical address
    Block *block_ = nullptr;     ///< the running block, or the last one; null: none, or it may be gone
    /// Events that an iteration of a spin loop must not contain if it is to be skipped.
    std::uint64_t disturbances_ = 0;
    int room_ = 0; ///< operations that the present cycle may still issue; the one that issues next may bring it below 0
    unsigned accesses_ = 0;
    bool in_block_ = false; ///< stays so until a block is left early or looked up anew
    /// What the loop has to check after the running block: these bits.
    std::uint8_t after_block_ = 0;
    static constexpr std::uint8_t kLeaves = 1; ///< the core shall leave detailed mode
    static constexpr std::uint8_t kRare =
        2;                   ///< `begun_` tells more of the block, it is not `kept`, or it crosses pages
    bool buffers_ = false;   ///< false: store buffer and write combiner are empty
    bool loads_look_ = true; ///< false: loads need not check buffers_, and polling_ needs no report of them
    bool user_ = false;      ///< charges go to user time
    unsigned cpl_ = 0;       ///< the privilege level for which user_ holds
    bool waiting_memory_ = false;
    bool waiting_core_ = false; ///< for an address, or for the end of requests that nothing needs
    bool waiting_idle_ = false, waiting_stores_ = false, waiting_combiner_ = false, walking_ = false, left_ = true;
    const TimedParams params_;
    std::array<std::array<Tick, static_cast<unsigned>(Charge::count)>, 2> spent_{}; ///< kernel, user
    // The scoreboard, in cycles.
    RegMask pending_ = kApart; ///< registers whose values are not ready yet, and always kApart
    std::int64_t load_ready_ = 0;
    std::array<std::int64_t, 34> ready_{};
    StoreBuffer stores_;
    L1Tlb l1_tlb_;
    SpinLoop spin_;
    Polling polling_;
    WriteCombiner combiner_;

    Tick since_ = 0, unreported_ = 0;
    std::uint64_t spun_ = 0; ///< c_.spun at the last PAUSE
    /// A core that was woken in a spin loop does not sleep again before it and the queue have passed this tick.
    Tick awake_until_ = 0;
    Access departed_; ///< the first access that ended since the core began to wait for a buffer, or last checked
    bool has_departed_ = false;
    struct Watch { ///< what the port wakes during an MWAIT; a core that sleeps in a spin loop is registered itself
        TimedCore *core;
    } watch_{this};
    Tick visible_ = 0;                 ///< the tick from which the core notices its signals
    std::unique_ptr<Overlap> overlap_; ///< null: the blocking model
    Overlap *looks_ahead_ = nullptr;
    Core::Begin begun_; ///< valid with `kRare`; otherwise empty
};

inline void TimedCore::fetch(PhysAddr at, Addr line) {
    fetch_line_ = at.value;
    if (ahead() || !port_.fetch_hit(line, hit_done()))
        fetch_slow(line);
}

inline void TimedCore::next_cycle() {
    advance_cycle();
    begin_group();
}

} // namespace moscope::x86
