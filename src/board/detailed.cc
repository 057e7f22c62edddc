// SPDX-License-Identifier: BSD-3-Clause
#include "board/detailed.hh"

#include <algorithm>

namespace moscope {

namespace {

constexpr Tick kSlice = 20'000 * kTicksPerNs; ///< between two looks at the host's clock

/// By core.
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
    board.interrupts_travel([&machine](unsigned from, unsigned to) {
        return machine.command_latency(machine.chip_of_core(from), machine.chip_of_core(to));
    });
    if (machine.chips_apart())
        set_up_side_by_side();
    for (const auto &core : board.cores) {
        const unsigned chip = machine.chip_of_core(core->number);
        EventQueue &queue = machine.chips_apart() ? machine.queue_of_chip(chip) : board.queue;
        cores_.push_back(std::make_unique<x86::TimedCore>(queue, machine.port(core->number), *core, params));
        x86::TimedCore *timed = cores_.back().get();
        if (board.config.attribution)
            timed->observer =
                journals_.empty() ? static_cast<x86::TransactionObserver *>(&attribution_) : journals_[chip].get();
        if (machine.chips_apart())
            timed->aside = [this, chip, number = core->number](x86::TimedCore &c) {
                aside_[chip].push_back({c.queue().now(), &c, number});
                machine_.ask_between();
            };
        timed->split_lock = &split_lock_;
        timed->on_death = [this, c = core.get()](x86::Exit why) {
            board_.died = c;
            const bool lacking = why == x86::Exit::unmodelled;
            board_.end({lacking ? "unmodelled" : "triple_fault", "core " + std::to_string(c->number), 0});
        };
        board.on_signal(core->number, [&board, c = core.get()] {
            if (c->timed)
                c->timed->signalled(board.moment_of(*c));
        });
    }
}

void Detailed::set_up_side_by_side() {
    board_.beside = true;
    board_.port_queue = &machine_.queue();
    aside_.resize(machine_.chips());
    for (unsigned chip = 0; chip < machine_.chips(); ++chip)
        journals_.push_back(std::make_unique<Journal>(machine_.queue_of_chip(chip), attribution_, !attribution_.logs(),
                                                      [this] { machine_.ask_between(); }));
    board_.blocks.front()->map().on_news = [this] { machine_.ask_between(); };
    std::vector<std::vector<x86::Core *>> of_chip(machine_.chips());
    for (const auto &c : board_.cores)
        of_chip.at(c->chip).push_back(c.get());
    machine_.on_take([this, of_chip = std::move(of_chip)](unsigned chip, unsigned thread) {
        for (x86::Core *c : of_chip[chip])
            c->blocks = board_.blocks.at(thread).get();
    });
    board_.queue.on_defer = [this] { machine_.ask_between(); };
    machine_.run_aside(board_.queue, [this](Tick end) { between(end); });
}

/// While all chips are at rest at the end of a window: devices' events of the window, and cores' accesses to devices, in their order.
void Detailed::between(Tick end) {
    board_.at_rest = true;
    std::vector<Aside> waiting;
    for (auto &of_chip : aside_) {
        waiting.insert(waiting.end(), of_chip.begin(), of_chip.end());
        of_chip.clear();
    }
    std::sort(waiting.begin(), waiting.end(),
              [](const Aside &a, const Aside &b) { return std::pair(a.tick, a.number) < std::pair(b.tick, b.number); });
    const auto run_devices = [this](Tick until) {
        bool stopped = board_.queue.stopped();
        while (board_.queue.next() < until) { // stop() ends the run, not what has happened by then
            board_.queue.run(until);
            stopped |= board_.queue.stopped();
        }
        if (stopped)
            board_.queue.stop();
    };
    for (const Aside &a : waiting) {
        run_devices(a.tick + 1);
        board_.moment = a.tick;
        a.core->resume_aside();
    }
    run_devices(end);
    board_.blocks.front()->settle();
    if (std::any_of(journals_.begin(), journals_.end(), [](const auto &j) { return j->full(); })) {
        close_journals();
        machine_.share_between(journal_parts(),
                               [this](unsigned part) { Journal::replay(journals_, part, attribution_); });
    }
    board_.at_rest = false;
}

Tick Detailed::soon() const { return std::max(machine_.now(), machine_.next()) + kSlice; }

void Detailed::enter() {
    MOSCOPE_CHECK(!active_);
    active_ = true;
    const Tick t = board_.scheduler.now();
    board_.detailed = true;
    // Devices are at the first chip.
    if (machine_.dma_ports())
        board_.transfers_go(&machine_.dma_port(0), [this](Addr dram, unsigned size) {
            if (journals_.empty())
                attribution_.stored_by_device(dram, size);
            else
                journals_.front()->stored_by_device(dram, size);
        });
    board_.blocks.front()->map().run_side_by_side(machine_.chips_apart());
    for (const auto &c : cores_)
        c->take_over(t);
}

void Detailed::run(Tick until, const std::function<bool()> &host_done) {
    MOSCOPE_CHECK(!leaving_);
    while (board_.ending.state.empty() && reached() < until && !host_done()) {
        const Tick next = machine_.next();
        if (next == kNever && !any_dozing()) {
            board_.end({"hang", "nothing is left that could wake a core", 0});
            return;
        }
        const Tick to = next >= until ? until : std::min(until, soon());
        if (to == until)
            end_.schedule(std::max(until - 1, board_.queue.now()));
        machine_.run(to);
        if (board_.ending.state.empty())
            reached_ = to;
    }
    wake_the_dozing();
}

bool Detailed::any_dozing() const {
    return std::any_of(cores_.begin(), cores_.end(), [](const auto &c) { return c->dozing(); });
}

/// Before anybody looks: cores that sleep in spin loops have turned up to here.
void Detailed::wake_the_dozing() {
    for (const auto &c : cores_)
        c->wake_from_doze(reached());
}

bool Detailed::leave(const std::function<bool()> &host_done) {
    MOSCOPE_CHECK(active_);
    leaving_ = true;
    for (const auto &c : cores_)
        c->ask_to_leave();
    const auto all_left = [this] {
        return std::all_of(cores_.begin(), cores_.end(), [](const auto &c) { return c->left(); });
    };
    while (!all_left() || board_.transfers_under_way()) {
        MOSCOPE_CHECK(machine_.next() != kNever);
        machine_.run(soon());
        if (host_done())
            return false;
    }
    board_.transfers_go(nullptr, {});
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
