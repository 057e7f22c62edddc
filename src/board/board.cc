// SPDX-License-Identifier: BSD-3-Clause
#include "board/board.hh"

#include <algorithm>
#include <tuple>
#include <utility>

#include "base/error.hh"
#include "board/board_devices.hh"
#include "cpu/x86/mmu/translations.hh"
#include "cpu/x86/system/interrupts.hh"
#include "dev/firmware/acpi.hh"
#include "sim/parallel/logical_processes.hh"

namespace moscope {

namespace {

constexpr Addr kHole = 0xC0000000;     ///< 3 GiB to 4 GiB belong to devices
constexpr Addr kAcpiAddress = 0xE0000; ///< where an operating system finds the root pointer by scanning, too

// Cost of a device access in core cycles: a port access through the south bridge takes about a microsecond, a register of the
// chip set half of that, the core's own APIC tens of nanoseconds.
constexpr std::uint64_t kPortCycles = 2400, kMmioCycles = 1200, kApicCycles = 60;

std::uint64_t mmio_cost(PhysAddr a) { return a.value >> 12 == dev::LocalApic::kBase >> 12 ? kApicCycles : kMmioCycles; }

// gem5's pseudo-instructions (m5ops) that mean something here.
enum M5 : unsigned {
    m5_arm = 0x00,
    m5_rpns = 0x07,
    m5_exit = 0x21,
    m5_fail = 0x22,
    m5_sum = 0x23,
    m5_initparam = 0x30,
    m5_reset_stats = 0x40,
    m5_dump_stats = 0x41,
    m5_dump_reset_stats = 0x42,
    m5_checkpoint = 0x43,
    m5_work_begin = 0x5a,
    m5_work_end = 0x5b
};

} // namespace

Board::Board(const SystemConfig &c, EventQueue &q, GuestMemory &m)
    : config(c), memory(m), queue(q), scheduler(queue, c.core_clock) {
    phys.memory = memory.base();
    phys.dram = memory.bytes();
    phys.hole = kHole;
    for (unsigned i = 0; i < std::clamp(c.threads, 1u, c.chips); ++i)
        blocks.push_back(std::make_unique<x86::BlockCache>(phys));
    x86::BlockCache::join(blocks);
    blocks.front()->map().set_chips(c.chips);
    for (unsigned i = 0; i < c.cores; ++i) {
        x86::BlockCache &own =
            *blocks[LogicalProcesses::thread_of(c.node_of(i), c.chips, static_cast<unsigned>(blocks.size()))];
        cores.push_back(std::make_unique<x86::Core>(i, *this, phys, own, config.cpu));
        cores.back()->chip = c.node_of(i);
        scheduler.add_core(*cores.back());
        for (const auto &b : blocks)
            b->add_core(*cores.back());
    }
    describe_memory();
    devices_ = std::make_unique<Devices>(*this, mmio_, ports_);
    for (unsigned i = 0; i < c.cores; ++i) {
        cores[i]->interrupts = devices_->bus.apics()[i];
        cores[i]->apic_id = c.apic_id(i);
        x86::reset(*cores[i], false);
        cores[i]->wait_for_sipi = i != 0;
    }
    build_firmware();
}

Board::~Board() = default;

Tick Board::shortest_access(Clock core_clock) {
    return core_clock.edge(std::min({kPortCycles, kMmioCycles, kApicCycles}));
}

void Board::describe_memory() {
    for (unsigned n = 0; n < config.chips; ++n) {
        const std::uint64_t first = n * config.memory_per_node, last = first + config.memory_per_node;
        const std::uint64_t cut = std::min(last, std::max(first, phys.hole));
        if (cut > first)
            firmware.memory.push_back({n, first, cut - first});
        if (last > cut)
            firmware.memory.push_back({n, phys.phys_address(cut).value, last - cut});
    }
}

void Board::build_firmware() {
    dev::Firmware &f = firmware;
    for (unsigned i = 0; i < config.cores; ++i)
        f.processors.push_back({static_cast<std::uint8_t>(config.apic_id(i)), config.node_of(i)});
    f.hops = config.hops;
    f.reserve(0xA0000, kAcpiAddress - 0xA0000); // video memory, option ROMs
    for (const dev::Device *d : devices_->all.all())
        d->describe(f);
    const dev::AcpiImage image = dev::build_acpi(f, kAcpiAddress);
    if (image.bytes.size() > 0x100000 - kAcpiAddress)
        throw UserError("system: the firmware tables do not fit below 1 MiB: expected fewer cores");
    f.reserve(kAcpiAddress, 0x100000 - kAcpiAddress);
    std::copy_n(image.bytes.data(), image.bytes.size(),
                reinterpret_cast<std::uint8_t *>(phys.host(PhysAddr(image.address))));
    rsdp = image.address;
}

void Board::end(Ending e, const x86::Core *by) {
    EventQueue *const at = detailed && by && by->timed ? &by->timed->queue() : &queue;
    const Tick tick = at == &queue ? now() : at->now();
    keep(std::move(e), detailed ? Moment{tick, by ? by->number : ~0u} : kFunctional);
    if (detailed) {
        at->stop();
        return;
    }
    scheduler.stop();
    for (const auto &c : cores)
        c->signals.raise(dev::CoreSignals::stop);
}

/// All endings of a round or an epoch are reported in the order of their moments, whichever thread comes first. At the
/// same tick of the same core, a marker gives way to another ending.
void Board::keep(Ending e, Moment at) {
    const std::lock_guard lock(shared_);
    const bool replaces_marker = detailed && at == ended_at_ && ending.state == "marker" && e.state != "marker";
    if (ending.state.empty() || replaces_marker) {
        ending = std::move(e);
        ended_at_ = at;
    } else if (at < ended_at_) {
        later_.emplace(later_.begin(), std::exchange(ended_at_, at), std::exchange(ending, std::move(e)));
    } else {
        const auto after = std::upper_bound(later_.begin(), later_.end(), at,
                                            [](const Moment &m, const auto &later) { return m < later.first; });
        later_.emplace(after, at, std::move(e));
    }
}

void Board::console_showed(const std::string &marker) {
    if (detailed) {
        end({"marker", marker, 0});
        return;
    }
    keep({"marker", marker, 0}, kFunctional);
    scheduler.stop_between_rounds();
}

void Board::clear_ending() {
    ending = {};
    if (!later_.empty()) {
        std::tie(ended_at_, ending) = std::move(later_.front());
        later_.erase(later_.begin());
    }
    scheduler.clear_stop();
    for (const auto &c : cores)
        c->signals.lower(dev::CoreSignals::stop);
}

bool Board::hopeless() const {
    return !devices_->bus.in_flight() && std::all_of(cores.begin(), cores.end(), [](const auto &c) {
        const bool masked = c->halted && !c->monitor.waiting && !(c->flags.system & x86::Flags::if_);
        return (c->wait_for_sipi || masked) && !interrupt_deliverable(*c);
    });
}

std::uint64_t Board::mmio_read(x86::Core &c, PhysAddr a, unsigned size) {
    c.extra_cycles += mmio_cost(a);
    return mmio_.read(c.number, a.value, size);
}

void Board::mmio_write(x86::Core &c, PhysAddr a, std::uint64_t value, unsigned size) {
    c.extra_cycles += mmio_cost(a);
    mmio_.write(c.number, a.value, value, size);
}

std::uint64_t Board::io_read(x86::Core &c, std::uint16_t port, unsigned size) {
    c.extra_cycles += kPortCycles;
    return ports_.read(c.number, port, size);
}

void Board::io_write(x86::Core &c, std::uint16_t port, std::uint64_t value, unsigned size) {
    c.extra_cycles += kPortCycles;
    ports_.write(c.number, port, value, size);
}

void Board::unknown_msr(x86::Core &, std::uint32_t msr, bool) {
    const std::lock_guard lock(shared_);
    ++unknown_msrs[msr];
}

bool Board::msr_read(x86::Core &, std::uint32_t, std::uint64_t &) { return false; }
bool Board::msr_write(x86::Core &, std::uint32_t, std::uint64_t) { return false; }

void Board::m5op(x86::Core &c, unsigned function) {
    c.r[x86::rax] = 0;
    switch (function) {
    case m5_exit: end({"exit", "m5 exit", 0}, &c); break;
    case m5_fail: end({"exit", "m5 fail", static_cast<int>(c.r[x86::rsi] & 0xff)}, &c); break;
    case m5_rpns:
        if (c.timed)
            c.timed->disturb(); // a loop that waits for a time differs in each iteration
        c.r[x86::rax] = static_cast<std::uint64_t>((detailed && c.timed ? c.timed->local_time() : now()) / kTicksPerNs);
        break;
    case m5_sum:
        c.r[x86::rax] = c.r[x86::rdi] + c.r[x86::rsi] + c.r[x86::rdx] + c.r[x86::rcx] + c.r[x86::r8] + c.r[x86::r9];
        break;
    case m5_checkpoint: end({"marker", "checkpoint", 0}, &c); break;
    case m5_work_begin: // work item 0 is the region of interest, others are operations of the workload
        if (!c.r[x86::rdi])
            end({"marker", "workbegin", 0}, &c);
        break;
    case m5_work_end:
        if (!c.r[x86::rdi])
            end({"marker", "workend", 0}, &c);
        else if (!probes || !probes->count_calls())
            ++operations;
        break;
    default: // the others only return 0
        break;
    }
}

void Board::probed(x86::Core &c, unsigned probe, const x86::Probed &before) {
    switch (probes->called(c, probe, before)) {
    case ProgramProbes::Action::stop: end({"marker", probes->name(probe), 0}, &c); break;
    case ProgramProbes::Action::count: ++operations; break;
    case ProgramProbes::Action::none: break;
    }
}

void Board::system_called(x86::Core &c) {
    if (probes)
        operations += probes->system_called(c.r[x86::rax]);
}

void Board::returned(x86::Core &c, Addr at) { probes->allocations().returned(c, at); }

void Board::console_written(char c) {
    console.push_back(c);
    std::size_t longest = 0;
    for (const std::string &m : config.markers)
        longest = std::max(longest, m.size());
    console_tail_.push_back(c);
    if (console_tail_.size() > longest)
        console_tail_.erase(0, console_tail_.size() - longest);
    for (const std::string &m : config.markers)
        if (!m.empty() && m.back() == c && console_tail_.ends_with(m)) {
            console_showed(m);
            return;
        }
}

dev::NetworkReport Board::network() const {
    return devices_->all.network ? devices_->all.network() : dev::NetworkReport{};
}

std::vector<dev::RingArea> Board::rings() const { return devices_->all.pci().rings(); }

void Board::console_input(std::string_view bytes) {
    if (devices_->all.console_input)
        devices_->all.console_input(bytes);
}

void Board::on_signal(unsigned core, std::function<void()> f) { devices_->bus.apics()[core]->on_raise(std::move(f)); }

void Board::interrupts_travel(std::function<Tick(unsigned, unsigned)> way) {
    devices_->bus.travel(queue, *this, [this, way = std::move(way)](unsigned from, unsigned to) {
        return detailed ? way(from, to) : Tick{0};
    });
}

void Board::transfers_go(Port *port, const EventQueue *port_queue, std::function<void(Addr, unsigned)> stored) {
    if (!devices_->dma)
        return;
    devices_->dma->through(port, processes, port_queue);
    devices_->dma->stored = std::move(stored);
}

bool Board::transfers_under_way() const { return devices_->dma && !devices_->dma->idle(); }

void Board::interrupts_arrive() { devices_->bus.arrive_all(); }

void Board::archive(Archive &a) {
    scheduler.archive(a);
    for (const auto &c : cores) {
        a.section("core");
        c->archive(a);
        a(c->retired, c->extra_cycles, c->pauses, c->spun, c->spin_at, c->spin_mark, c->signals);
        if (a.loading()) {
            c->flush_tlb(true);
            c->mode_changed();
            c->debug_changed();
        }
    }
    devices_->all.archive(a);
    a.section("counts");
    std::uint64_t done = operations;
    a(done, unknown_msrs);
    operations = done;
    a.section("translations");
    if (a.loading())
        for (const auto &b : blocks)
            b->clear();
    for (const auto &c : cores)
        x86::archive_translations(*c, a);
}

} // namespace moscope
