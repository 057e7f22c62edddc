// SPDX-License-Identifier: BSD-3-Clause
#include "board/detailed.hh"

#include <algorithm>

namespace moscope {

namespace {

constexpr Tick kSlice = 20'000 * kTicksPerNs; ///< between two reads of the host's clock

/// The chip of each core.
std::vector<unsigned> chips(const Machine &machine, std::size_t cores) {
    std::vector<unsigned> chip(cores);
    for (unsigned core = 0; core < cores; ++core)
        chip[core] = machine.chip_of_core(core);
    return chip;
}

} // namespace

Detailed::Detailed(Board &board, Machine &machine, const x86::TimedParams &params)
    : board_(board),
      machine_(machine),
      attribution_(chips(machine, board.cores.size()), board.memory.bytes()),
      end_(board.queue, "end of the run", [](Component &, Tick) {}) {
    if (!board.config.transactions.empty())
        attribution_.log_to(board.config.transactions);
    if (board.config.stacks)
        attribution_.sample_stacks(std::make_unique<StackSamples>(board.cores));
    if (board.config.attribution && params.overlaps())
        attribution_.count_loads();
    board.interrupts_travel([&machine](unsigned from, unsigned to) {
        return machine.command_latency(machine.chip_of_core(from), machine.chip_of_core(to));
    });
    board.processes = &machine.processes();
    set_up_processes();
    for (const auto &core : board.cores) {
        EventQueue &queue = machine.queue_of_core(core->number);
        cores_.push_back(std::make_unique<x86::TimedCore>(queue, machine.port(core->number), *core, params));
        x86::TimedCore *timed = cores_.back().get();
        if (board.config.attribution)
            timed->observer = journals_.empty() ? static_cast<x86::TransactionObserver *>(&attribution_)
                                                : journals_[queue.domain()].get();
        timed->processes = board.processes;
        timed->split_lock = &split_lock_;
        timed->on_death = [this, c = core.get()](x86::Exit why) {
            board_.died = c;
            const bool lacking = why == x86::Exit::unmodelled;
            board_.end({lacking ? "unmodelled" : "triple_fault", "core " + std::to_string(c->number), 0});
        };
        board.on_signal(core->number, [&board, c = core.get()] {
            if (c->timed)
                c->timed->signalled(board.present_of(*c));
        });
    }
}

/// What logical processes need beyond their cores: a journal of attribution events, and the decoded code of each host
/// thread. With one process, none of the functions that are set here is called.
void Detailed::set_up_processes() {
    LogicalProcesses &processes = machine_.processes();
    const auto request = [&processes] { processes.request_serial_phase(); };
    for (unsigned p = 0; processes.size() > 1 && p < processes.size(); ++p)
        journals_.push_back(std::make_unique<Journal>(processes.queue(p), attribution_, !attribution_.logs(), request));
    board_.blocks.front()->map().on_news = request;
    std::vector<std::vector<x86::Core *>> of_process(processes.size());
    for (const auto &c : board_.cores)
        of_process[c->chip % processes.size()].push_back(c.get());
    processes.on_migrate([this, of_process = std::move(of_process)](unsigned process, unsigned thread) {
        for (x86::Core *c : of_process[process])
            c->blocks = board_.blocks.at(thread).get();
    });
    processes.on_serial_phase([this] {
        board_.blocks.front()->settle();
        if (std::any_of(journals_.begin(), journals_.end(), [](const auto &j) { return j->full(); })) {
            close_journals();
            machine_.processes().share_work(journal_parts(),
                                            [this](unsigned part) { Journal::replay(journals_, part, attribution_); });
        }
    });
}

/// Without an event, only cores that sleep in endless loops are left.
Tick Detailed::soon() const {
    const Tick next = machine_.next();
    return (next == kNever ? reached() : std::max(machine_.now(), next)) + kSlice;
}

void Detailed::enter() {
    MOSCOPE_CHECK(!active_);
    active_ = true;
    const Tick t = board_.scheduler.now();
    board_.detailed = true;
    if (board_.config.nic)
        machine_.allow_device_accesses(board_.config.nic->transfers);
    if (machine_.dma_ports())
        board_.transfers_go(&machine_.dma_port(0), &machine_.queue(), [this](Addr dram, unsigned size) {
            if (journals_.empty())
                attribution_.stored_by_device(dram, size);
            else
                journals_.front()->stored_by_device(dram, size);
        });
    board_.blocks.front()->map().run_side_by_side(machine_.processes().size() > 1);
    for (const auto &c : cores_)
        c->take_over(t);
}

void Detailed::run(Tick until, const std::function<bool()> &host_done) {
    MOSCOPE_CHECK(!leaving_);
    while (board_.ending.state.empty() && reached() < until) {
        if (host_done())
            return; // without waking cores: the host's time must not change events
        const Tick next = machine_.next();
        if ((next == kNever && !any_asleep()) || board_.hopeless()) {
            board_.end(
                {"hang",
                 next == kNever ? "nothing is left that could wake a core" : "all cores wait with interrupts off", 0});
            return;
        }
        const Tick to = next >= until && next != kNever ? until : std::min(until, soon());
        if (to == until)
            end_.schedule(std::max(until - 1, board_.queue.now()));
        machine_.run(to);
        if (board_.ending.state.empty())
            reached_ = to;
    }
    wake_sleepers();
}

bool Detailed::any_asleep() const {
    return std::any_of(cores_.begin(), cores_.end(), [](const auto &c) { return c->asleep(); });
}

/// Before anything reads counts: cores that sleep in spin loops account for their time up to here.
void Detailed::wake_sleepers() {
    for (const auto &c : cores_)
        c->wake_sleeper(reached());
}

bool Detailed::leave(const std::function<bool()> &host_done) {
    MOSCOPE_CHECK(active_);
    leaving_ = true;
    for (const auto &c : cores_)
        c->ask_to_leave();
    const auto all_left = [this] {
        return std::all_of(cores_.begin(), cores_.end(), [](const auto &c) { return c->left(); });
    };
    while (!all_left() || board_.transfers_under_way() || machine_.in_flight() != 0) { // prefetches, too
        MOSCOPE_CHECK(machine_.next() != kNever);
        machine_.run(soon());
        if (host_done())
            return false;
    }
    board_.transfers_go(nullptr, nullptr, {});
    // Functional mode ends slices at events. A wake-up of the watchdog would make this run differ from one that is
    // restored from a checkpoint.
    machine_.come_to_rest();
    Tick latest = machine_.now();
    for (const auto &c : cores_)
        latest = std::max(latest, c->local_time());
    replay_journals();
    board_.blocks.front()->settle();
    board_.blocks.front()->map().run_side_by_side(false);
    for (const auto &c : board_.cores)
        c->set_direct(true);
    board_.detailed = false;
    board_.scheduler.set_now(latest);
    board_.interrupts_arrive();
    active_ = leaving_ = false;
    return true;
}

void Detailed::reset() {
    for (const auto &c : cores_)
        c->reset_charges(reached());
    replay_journals();
    machine_.reset_stats();
    attribution_.reset();
}

void Detailed::check_conservation() const {
    using C = x86::TimedCore::Charge;
    Tick memory = 0, unreported = 0, spinning = 0;
    for (const auto &c : cores_) {
        Tick sum = 0;
        for (unsigned k = 0; k < static_cast<unsigned>(C::count); ++k)
            sum += c->spent(static_cast<C>(k));
        MOSCOPE_CHECK(sum == c->window());
        for (const C k : {C::busy, C::core})
            for (const bool user : {false, true}) {
                MOSCOPE_CHECK(c->spun(k, user) <= c->spent(k, user));
                spinning += c->spun(k, user);
            }
        memory += c->spent(C::memory);
        unreported += c->unreported();
    }
    if (board_.config.attribution) {
        MOSCOPE_CHECK(memory == attribution_.exposed() + unreported);
        MOSCOPE_CHECK(spinning == attribution_.spinning());
    }
}

void Detailed::settle() {
    for (const auto &c : cores_)
        c->settle(reached());
    replay_journals();
}

} // namespace moscope
