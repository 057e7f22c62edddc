// SPDX-License-Identifier: BSD-3-Clause
// The core model that overlaps misses (`core.model = out_of_order`); the other model is the blocking one.
//
// Instructions take effect in program order, each load and store at a moment at which the core holds the permission for
// the line, as in the blocking model. Memory order is therefore that of x86-TSO, as there, and nothing below changes
// it. Timing follows the dataflow: the window (window.hh) computes when an operation is dispatched, when its sources
// are ready and when it retires. The cycle of dispatch may lie before the core's clock, but never after it.
//
// A load that misses stops the core's fiber, not its window. While the core waits, it looks ahead (look_ahead.cc): it
// runs the operations behind the load on a copy of its registers, as far as the window reaches. Registers whose values
// depend on a missing line are marked unknown. Operations that need only known registers are executed, stores are kept
// aside, and branches that depend on unknown values follow the branch predictor, right or wrong. If such loads miss,
// their lines are requested at the cycle at which their addresses are ready, as long as miss buffers are free. Then the
// registers are restored. Whenever a line arrives, the core looks ahead again, so that loads that depend on the line
// are requested at once. After the wait, the operations that the window held are executed for real. They take no time
// beyond what the window computes: their cycles of dispatch lie before the clock until they have caught up with it.
//
// Nothing that is read ahead is ever used as a value, so there is nothing to check or to roll back. If a line is
// requested too early and lost again, its load misses a second time. No byte is read without permission, so runs do not
// depend on the order in which host threads run chips.
#pragma once

#include <array>
#include <bit>
#include <cstdint>

#include "cpu/x86/core.hh"
#include "cpu/x86/timed/branch_predictor.hh"
#include "cpu/x86/timed/window.hh"
#include "mem/port.hh"

namespace moscope::x86 {

class TimedCore;
struct Block;

class Overlap {
  public:
    explicit Overlap(TimedCore &core);

    void run_block(Block &);
    /// A load of the running instruction, or of a page walk for it, has missed in the first-level cache.
    void load_missed(Addr dram, void *to, unsigned size);
    /// A miss in the first-level TLB delays the running instruction's loads.
    void tlb_missed(std::int64_t cycles) { late_ += cycles; }
    /// To be called before and after the page walker's load of an entry: what walk_begins() returns, the state of the
    /// instruction's own loads, goes to walked(). There is one walker.
    struct OwnLoads {
        std::int64_t load_ready, arrived_at;
    };
    OwnLoads walk_begins();
    void walked(OwnLoads);
    /// To be called before and after the look-up of a block, and the delivery of an interrupt or a fault: the time that
    /// these take delays the next operation.
    void look_up_begins();
    void look_up_ended();
    /// A software prefetch: requests the line without waiting. A hint that needs a page walk, or finds no free miss
    /// buffer, is lost.
    void prefetch(Addr va, bool write, bool user);
    /// After its present load, the running instruction also loads from this line, because the access crosses lines.
    void also_loads(Addr dram, Addr va) {
        second_ = dram;
        second_va_ = va;
    }
    void loads_no_more() { second_ = kNone; }
    /// A store's access has ended and freed its miss buffer.
    void buffer_freed(Tick t);
    /// Waits until all operations have retired.
    void drain();
    /// The same, and until no request is under way.
    void come_to_rest();
    bool at_rest() const { return !under_way_; }
    /// At a PAUSE, which drains the window: whether the branch predictor is as it was at the last PAUSE, so that equal
    /// iterations take equal time.
    bool settled_since_last_pause();

    // --- data accesses while the core looks ahead; none of them fails, because the instruction may be on a wrong path
    void peek(Addr va, void *to, unsigned size, bool user);
    void keep(Addr va, const void *from, unsigned size, bool user);
    void modify(Addr va, unsigned size, void (*f)(void *, void *), void *context, bool user);
    void prefetch_ahead(Addr va, bool write, bool user);

  private:
    struct Flight {
        enum State : std::uint8_t { free, planned, under_way, done };
        Access access;
        Tick at = 0; ///< planned: when it is to be requested
        State state = free;
        bool awaited = false; ///< by the oldest load
        Overlap *owner = nullptr;
    };
    static constexpr unsigned kFlights = 64;

    /// The working state of a look ahead.
    struct Ahead {
        static constexpr unsigned kStores = 32;
        struct Store {
            Addr dram;
            unsigned size;
            bool known;
            std::uint8_t bytes[16];
        };
        const Op *op;
        ReadyCycles ready;
        DispatchPoint point;
        RegMask unknown;         ///< registers whose values are not known
        bool load_unknown;       ///< a load of the running operation has missed
        bool full;               ///< no miss buffer is free
        std::int64_t address_at; ///< when the running operation's addresses are ready
        BranchPredictor::History history;
        unsigned stores;
        std::array<Store, kStores> store;
    };
    struct Saved;

    /// Dispatches, executes and completes an operation of this form. The clock stands still meanwhile, see
    /// move_clock().
    const Op *run_simple(const Op *, const OpPipes &);
    const Op *run_load(const Op *, const OpPipes &);
    const Op *run_store(const Op *, const OpPipes &);
    const Op *run_general(const Op *, const OpPipes &);
    /// Moves the clock to the cycle of the last dispatch. Has to be called before anything reads the clock.
    void move_clock();
    /// Gives the next operation its place in the window. Returns its cycle of dispatch.
    std::int64_t take_place(unsigned slots);
    /// The same, and moves the clock to that cycle.
    std::int64_t dispatch(unsigned slots);
    /// The running operation has made this many stores. Returns the cycle at which it can retire. Later loads of the
    /// bytes wait for their data.
    std::int64_t stored(unsigned stores);
    std::int64_t execute(const OpTiming &, const OpPipes &, std::int64_t begins);
    std::int64_t loaded_at(unsigned loads);
    void branched(const OpTiming &, const Op *);
    void follow_clock();
    void wait_ended();
    /// Nothing is dispatched before this cycle; the core stalls until then.
    void hold_until(std::int64_t cycle);

    // --- requests
    Flight *flight_of(Addr line);
    void change(Flight &, Flight::State);
    /// Calls f(flight) for each flight whose bit is set in `flights`.
    template <class F> void for_each(std::uint64_t flights, F &&f) {
        for (; flights; flights &= flights - 1)
            f(flights_[static_cast<unsigned>(std::countr_zero(flights))]);
    }
    Flight *plan(Addr dram, unsigned size, Addr pc, Addr va, Tick at, AccessKind kind = AccessKind::load);
    /// The tick of this cycle; if it is past, the present tick.
    Tick tick_of(std::int64_t cycle) const;
    /// Whether the line is in the first-level cache. The check is not counted as a hit.
    bool in_cache(AccessKind kind, Addr dram);
    /// Plans the request for the second of the running instruction's two loads while the first one waits.
    void plan_second();
    void drop_plans();
    void request(Flight &);
    /// Issues the planned requests that are due. Returns the tick of the next one; kNever: there is none, or no miss
    /// buffer is free.
    Tick request_due(Flight &oldest);
    bool room_for_more() const;
    void arrived(Flight &);
    void wait_for(Flight &oldest);

    // --- looking ahead
    void look_ahead();
    void run_ahead(unsigned most);
    /// Runs one operation ahead. False: the look ahead ends here.
    bool step_ahead(const OpTiming &, const OpPipes &);
    void peek_line(Addr dram, void *to, unsigned size, Addr va, std::int64_t address_at);
    /// Plans a request for a missing line, unless the line is requested already or no miss buffer is left.
    void plan_ahead(Addr dram, unsigned size, Addr va, std::int64_t address_at, AccessKind kind);
    /// Translates without a page walk. `late`: cycles that a miss in the first-level TLB adds. False: the translation
    /// needs a walk, or the address is not DRAM.
    bool translate(Addr va, bool user, Addr &dram, unsigned &late) const;

    TimedCore &core_;
    Core &c_;
    Window window_;
    BranchPredictor predictor_;
    const unsigned most_, mispredicted_;
    std::int64_t seen_ = -1; ///< the clock's cycle when this class last read it; if it differs, something else moved it
    std::int64_t address_at_ = 0, done_at_ = 0;    ///< of the running operation
    std::int64_t late_ = 0;                        ///< cycles by which translation delays its accesses
    std::int64_t arrived_at_ = 0;                  ///< when the line that its load missed arrived; 0: no miss
    static constexpr std::int64_t kLongWalk = 512; ///< cycles; for the rest of a longer miss, the walker counts as free
    static constexpr Addr kNone = ~Addr{0};
    Addr second_ = kNone, second_va_ = 0;
    std::int64_t full_ = 0; ///< cycles since seen_ in which the window was full
    std::array<std::int64_t, 2> divider_free_{};
    PipeSchedule pipes_;
    std::int64_t taken_at_ = 0; ///< the first cycle of dispatch after the last taken branch
    /// Recent stores, by address in units of 8 bytes: the cycle from which a load can have their data.
    struct Forward {
        Addr unit = ~Addr{0};
        std::int64_t ready = 0;
    };
    static constexpr unsigned kForwards = 64;
    std::array<Forward, kForwards> forwards_{};
    std::array<Flight, kFlights> flights_;
    std::uint64_t in_use_ = 0, planned_ = 0; ///< a bit per flight: it is not free; it is planned
    unsigned under_way_ = 0;
    std::uint64_t arrivals_ = 0;
    bool waits_ = false; ///< arrivals wake the core
    std::uint64_t predictor_seen_ = 0;
    BranchPredictor::History history_seen_ = 0;
    Ahead ahead_;
};

} // namespace moscope::x86
