// SPDX-License-Identifier: BSD-3-Clause
#include "board/full_system.hh"

#include <chrono>
#include <numeric>
#include <optional>
#include <utility>

#include <nlohmann/json.hpp>

#include "board/board.hh"
#include "board/checkpoint.hh"
#include "board/detailed.hh"
#include "board/loader/loader.hh"
#include "board/otherwise.hh"
#include "board/registers.hh"
#include "cpu/x86/mmu/paging.hh"

namespace moscope {

namespace {

using Outcome = FunctionalScheduler::Outcome;

std::vector<loader::MemoryRange> loader_ranges(const dev::Firmware &f) {
    std::vector<loader::MemoryRange> ranges;
    for (const dev::Firmware::Range &r : f.memory_map())
        ranges.push_back({r.base, r.size, static_cast<loader::RangeKind>(r.type)});
    return ranges;
}

} // namespace

struct FullSystem::Impl {
    explicit Impl(const std::string &json) : config(parse_system_config(json)) {
        if (!config.machine) {
            own_memory = std::make_unique<GuestMemory>(config.memory());
            board = std::make_unique<Board>(config, own_queue, *own_memory);
            return;
        }
        MachineOptions options;
        options.seed = config.seed;
        options.zero_lookahead = config.zero_lookahead;
        options.watchdog = config.watchdog.value_or(options.watchdog);
        options.threads = config.threads;
        options.lookahead_at_most = Board::shortest_access(config.core_clock);
        options.threads_if_possible = config.threads_if_possible;
        machine = std::make_unique<Machine>(*config.machine, config.library, options);
        if (machine->memory_bytes() != config.memory() || machine->cores() < config.cores)
            throw UserError("system: detailed.machine: has " + std::to_string(machine->memory_bytes() >> 20) +
                            " MiB and " + std::to_string(machine->cores()) +
                            " cores: expected the memory that `chips` and `memory_per_node` "
                            "give, and at least `cores` cores");
        if (machine->processes().size() == 1)
            config.threads = 0;
        for (unsigned core = 0; config.threads && core < config.cores; ++core)
            if (machine->processes().size() != config.chips || machine->chip_of_core(core) != config.node_of(core))
                throw UserError("system: detailed.machine: core " + std::to_string(core) +
                                " is on another chip: expected the chips that `chips` and "
                                "`cores_per_chip` give");
        board = std::make_unique<Board>(config, machine->processes().serial_queue(), machine->guest_memory());
        x86::TimedParams params = machine->pipeline();
        params.skip_spinning = !config.zero_lookahead; // the comparison runs every instruction at its own moment
        detailed = std::make_unique<Detailed>(*board, *machine, params);
    }

    void load_kernel() {
        loader::BootMemory memory(board->phys, loader_ranges(board->firmware));
        const std::vector<std::uint8_t> kernel = loader::read_file(config.kernel);
        const std::vector<std::uint8_t> initrd =
            config.initrd.empty() ? std::vector<std::uint8_t>{} : loader::read_file(config.initrd);
        loader::BootRequest request;
        request.kernel_file = config.kernel;
        request.kernel = kernel;
        request.initrd = initrd;
        request.command_line = config.append;
        request.rsdp = board->rsdp;
        loader::apply(loader::load_kernel(request, memory).entry, *board->cores[0]);
        board->cores[0]->mode_changed();
    }

    SystemConfig config;
    EventQueue own_queue;
    std::unique_ptr<GuestMemory> own_memory;
    std::unique_ptr<Machine> machine;
    std::unique_ptr<Board> board;
    std::unique_ptr<Detailed> detailed;
    bool loaded = false;
    bool leaving = false;          ///< leave_detailed() has begun and is not done
    std::optional<Step> left_with; ///< what ended the run before or while the mode changed: the next step returns it

    /// What has ended the run.
    Step ended() const {
        const Board::Ending &e = board->ending;
        const bool unmodelled = e.state == "unmodelled" && board->died;
        return {e.state, unmodelled ? describe_instruction(*board->died) : e.detail, e.status};
    }
    Step step_functional(Tick until, unsigned host_ms);
    /// The byte at a virtual address (cr3 0: of the first core's address space); null where nothing is mapped or no DRAM is.
    const std::byte *host_of(Addr cr3, Addr address) const {
        const x86::Core &core = *board->cores[0];
        PhysAddr p;
        return x86::peek_translation(core, cr3 ? cr3 : core.cr3, address, p) ? board->phys.host(p) : nullptr;
    }
};

FullSystem::FullSystem(const std::string &config_json) : impl_(std::make_unique<Impl>(config_json)) {}
FullSystem::~FullSystem() = default;

FullSystem::Step FullSystem::step(unsigned host_ms) { return step_until(kNever, host_ms); }

FullSystem::Step FullSystem::Impl::step_functional(Tick until, unsigned host_ms) {
    if (!loaded && !config.restore) {
        load_kernel();
        loaded = true;
    }
    using Clock = std::chrono::steady_clock;
    const auto end = Clock::now() + std::chrono::milliseconds(host_ms);
    board->clear_ending();
    if (!board->ending.state.empty())
        return ended();
    switch (board->scheduler.run([&] { return Clock::now() >= end; }, until)) {
    case Outcome::running: return {};
    case Outcome::arrived: return {"time", "", 0};
    case Outcome::stopped: return {board->ending.state, board->ending.detail, board->ending.status};
    case Outcome::shutdown:
        return {"triple_fault", "core " + std::to_string(board->scheduler.culprit()->number) + " shut down", 0};
    case Outcome::hang:
        return {"hang", "all cores wait with interrupts off, or nothing is left that could wake one", 0};
    case Outcome::unmodelled: return {"unmodelled", describe_instruction(*board->scheduler.culprit()), 0};
    case Outcome::end_of_time: return {"end_of_time", "simulated time ends after 9000 s", 0};
    }
    return {};
}

FullSystem::Step FullSystem::step_until(Tick until, unsigned host_ms) {
    Board &board = *impl_->board;
    if (impl_->left_with)
        return *std::exchange(impl_->left_with, std::nullopt);
    if (!impl_->detailed || !impl_->detailed->active())
        return impl_->step_functional(until, host_ms);
    using Clock = std::chrono::steady_clock;
    const auto end = Clock::now() + std::chrono::milliseconds(host_ms);
    board.clear_ending();
    impl_->detailed->run(until, [&] { return Clock::now() >= end; });
    if (!board.ending.state.empty())
        return impl_->ended();
    return {Clock::now() >= end ? "running" : "time", "", 0};
}

void FullSystem::enter_detailed() {
    if (!impl_->detailed)
        throw UserError(
            "system: detailed: the machine was built without detailed mode: expected a configuration with `detailed`");
    if (impl_->detailed->active())
        return;
    if (!impl_->left_with) {
        impl_->board->clear_ending();
        if (!impl_->board->ending.state.empty())
            impl_->left_with = impl_->ended();
    }
    impl_->detailed->enter();
}

bool FullSystem::leave_detailed(unsigned host_ms) {
    if (!impl_->detailed || !impl_->detailed->active())
        return true;
    using Clock = std::chrono::steady_clock;
    const auto end = Clock::now() + std::chrono::milliseconds(host_ms);
    if (!std::exchange(impl_->leaving, true))
        impl_->board->clear_ending(); // which the last step has returned
    if (!impl_->detailed->leave([&] { return Clock::now() >= end; }))
        return false;
    impl_->leaving = false;
    if (!impl_->left_with && !impl_->board->ending.state.empty())
        impl_->left_with = impl_->ended();
    return true;
}

void FullSystem::reset_stats() {
    if (impl_->detailed)
        impl_->detailed->reset();
}

void FullSystem::watch_pages(const std::string &format) {
    if (!impl_->detailed)
        return;
    const auto j = nlohmann::json::parse(format);
    const auto type = [&](const char *name) { return PageFormat::Type{j.at(name).at(0), j.at(name).at(1)}; };
    impl_->detailed->watch_pages({j.at("page_table"), j.at("array"), j.at("size"), j.at("flags"), j.at("link"),
                                  j.at("mapping"), j.at("cache"), j.at("index"), j.at("type"), j.at("slab_flag"),
                                  j.at("kept_flags"), type("slab"), type("table"), j.at("direct")});
}

void FullSystem::what_if(const std::string &lines) {
    if (!impl_->machine || impl_->detailed->active())
        throw UserError("system: what-if: expected a machine with detailed mode, before that begins");
    const auto mapped = [&](Addr cr3, Addr first, Addr end) {
        std::vector<Addr> found;
        for (Addr va = first & ~(WhatIf::kPageBytes - 1); va < end; va += WhatIf::kPageBytes)
            if (const std::byte *bytes = impl_->host_of(cr3, va))
                found.push_back(static_cast<Addr>(bytes - impl_->machine->memory()));
        return found;
    };
    impl_->machine->treat_otherwise(lines_otherwise(nlohmann::json::parse(lines), *impl_->machine, mapped));
}

void FullSystem::watch_code(const std::string &places) {
    Board &board = *impl_->board;
    MOSCOPE_CHECK(!board.detailed);
    board.probes = std::make_unique<ProgramProbes>(nlohmann::json::parse(places), board.phys);
    for (const auto &b : board.blocks)
        b->probe(board.probes->places());
}

std::string FullSystem::code_report() const {
    const ProgramProbes *probes = impl_->board->probes.get();
    return (probes ? probes->report() : nlohmann::json::array()).dump();
}

std::pair<std::string, std::string> FullSystem::allocations() const {
    if (!impl_->board->probes)
        return {};
    const Allocations &known = impl_->board->probes->allocations();
    return {known.pieces(), known.sites()};
}

std::string FullSystem::stats_json() {
    nlohmann::json out;
    if (!impl_->detailed)
        return out.dump();
    Detailed &d = *impl_->detailed;
    d.settle();
    d.check_conservation();
    using C = x86::TimedCore::Charge;
    for (const auto &c : d.cores()) {
        nlohmann::json core = {{"window", c->window()}};
        for (unsigned i = 0; i < kTimeKinds; ++i) {
            const C k{static_cast<std::uint8_t>(i)};
            core[name_of(k)] = {{"kernel", c->spent(k, false)}, {"user", c->spent(k, true)}};
        }
        core["unreported"] = c->unreported();
        for (const C k : {C::busy, C::core})
            core["spin"][name_of(k)] = {{"kernel", c->spun(k, false)}, {"user", c->spun(k, true)}};
        out["cores"].push_back(core);
    }
    out["attribution"] = d.attribution().totals();
    out["machine"] = impl_->machine->stats();
    out["machine"]["tick"] = d.reached(); // not when the last event happened, which depends on the lookahead
    return out.dump();
}

AttributionRows FullSystem::attribution_rows() const {
    return impl_->detailed ? impl_->detailed->attribution().rows() : AttributionRows{};
}

void FullSystem::keep_attribution() {
    if (impl_->detailed)
        impl_->detailed->keep_attribution();
}

AttributionRows FullSystem::kept_attribution_rows() const {
    return impl_->detailed ? impl_->detailed->attribution().kept_rows() : AttributionRows{};
}

void FullSystem::record_epochs() {
    if (!impl_->machine || !impl_->machine->processes().record_epochs())
        throw UserError("epochs: detailed mode runs as one logical process: expected one logical process per chip");
}

std::string FullSystem::epoch_record() const {
    const EpochRecord *record = impl_->machine ? impl_->machine->processes().epoch_record() : nullptr;
    return record ? std::string(reinterpret_cast<const char *>(record->rows().data()),
                                record->rows().size() * sizeof(record->rows()[0]))
                  : std::string{};
}

std::string FullSystem::episodes() const {
    return impl_->detailed ? impl_->detailed->attribution().episodes() : std::string{};
}

std::string FullSystem::stacks() const {
    return impl_->detailed ? impl_->detailed->attribution().stacks() : std::string{};
}

void FullSystem::stop_stacks() {
    if (impl_->detailed)
        impl_->detailed->stop_stacks();
}

std::string FullSystem::loads() const {
    return impl_->detailed ? impl_->detailed->attribution().loads() : std::string{};
}

std::string FullSystem::console_output() {
    std::string out;
    out.swap(impl_->board->console);
    return out;
}

void FullSystem::console_input(std::string_view bytes) { impl_->board->console_input(bytes); }

std::vector<std::uint64_t> FullSystem::instructions_by_core() const {
    std::vector<std::uint64_t> n;
    for (const auto &c : impl_->board->cores)
        n.push_back(c->retired);
    return n;
}

std::uint64_t FullSystem::instructions() const {
    const auto n = instructions_by_core();
    return std::accumulate(n.begin(), n.end(), std::uint64_t{0});
}

std::uint64_t FullSystem::pauses() const {
    std::uint64_t n = 0;
    for (const auto &c : impl_->board->cores)
        n += c->pauses;
    return n;
}

std::uint64_t FullSystem::spun() const {
    std::uint64_t n = 0;
    for (const auto &c : impl_->board->cores)
        n += c->spun;
    return n;
}

std::uint64_t FullSystem::operations() const { return impl_->board->operations; }

const std::map<std::uint32_t, std::uint64_t> &FullSystem::unknown_msrs() const { return impl_->board->unknown_msrs; }

/// With several processes, the serial queue's time is that of its last event, which may be before the end of the run.
Tick FullSystem::now() const {
    const Tick t = impl_->board->now();
    return impl_->detailed && impl_->detailed->active() ? std::max(t, impl_->detailed->reached() - 1) : t;
}

dev::NetworkReport FullSystem::network() const { return impl_->board->network(); }

std::vector<dev::RingArea> FullSystem::rings() const { return impl_->board->rings(); }

std::uint64_t FullSystem::touched_bytes() const { return touched_pages(impl_->board->memory).size() * 4096; }

void FullSystem::save(const std::string &path) const {
    if (impl_->board->detailed)
        throw UserError(path +
                        ": cannot be written in detailed mode, whose caches and messages no checkpoint holds: expected "
                        "leave_detailed first");
    Archive a;
    impl_->board->archive(a);
    write_checkpoint(path, impl_->config.description, a, impl_->board->memory);
}

void FullSystem::restore(const std::string &path) {
    Board &board = *impl_->board;
    board.memory.clear();
    const auto fits = [&](const std::string &description) {
        return same_machine(description, impl_->config.description);
    };
    Archive a = read_checkpoint(path, fits, board.memory);
    try {
        board.archive(a);
    } catch (const UserError &e) { // a component does not know the file
        throw UserError(path + ": " + e.what());
    }
    if (!a.at_end())
        throw UserError(path + ": holds more than this machine has: expected the options that it was written with");
    impl_->loaded = true;
}

std::string FullSystem::read_physical(Addr address, std::uint64_t size) const {
    const PhysMap &phys = impl_->board->phys;
    std::string out;
    while (out.size() < size) {
        const Addr a = address + out.size();
        const std::uint64_t n = std::min<std::uint64_t>(size - out.size(), 4096 - (a & 4095));
        const std::byte *p = phys.host(PhysAddr(a));
        if (!p)
            break;
        out.append(reinterpret_cast<const char *>(p), n);
    }
    return out;
}

std::string FullSystem::read_virtual(Addr cr3, Addr address, std::uint64_t size) const {
    std::string out;
    while (out.size() < size) {
        const Addr a = address + out.size();
        const std::uint64_t n = std::min<std::uint64_t>(size - out.size(), 4096 - (a & 4095));
        const std::byte *p = impl_->host_of(cr3, a);
        if (!p)
            break;
        out.append(reinterpret_cast<const char *>(p), n);
    }
    return out;
}

Addr FullSystem::physical_of(std::uint64_t dram) const { return impl_->board->phys.phys_address(dram).value; }

std::string FullSystem::registers_text() const {
    const x86::Core *c = impl_->board->died ? impl_->board->died : impl_->board->scheduler.culprit();
    return describe_registers(c ? *c : *impl_->board->cores[0]);
}

} // namespace moscope
