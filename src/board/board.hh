// SPDX-License-Identifier: BSD-3-Clause
// The board: address spaces with their devices, interrupt wiring, firmware tables, and the platform functions of a core. Each
// device registers itself with its place and describes itself to the firmware (dev/devices.hh).
#pragma once

#include <atomic>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "board/functional.hh"
#include "board/program_probes.hh"
#include "board/system_config.hh"
#include "cpu/x86/core.hh"
#include "cpu/x86/decode/block.hh"
#include "cpu/x86/timed/timed_core.hh"
#include "dev/bus.hh"
#include "dev/firmware/firmware.hh"
#include "dev/pci/pci.hh"
#include "dev/time.hh"
#include "mem/guest_memory.hh"
#include "mem/phys_map.hh"
#include "sim/event_queue.hh"

namespace moscope {

class Board final : public x86::Platform, public dev::TimeSource {
  public:
    /// The caller owns the devices' queue and the memory; with detailed mode, they are the machine's.
    Board(const SystemConfig &config, EventQueue &queue, GuestMemory &memory);
    ~Board() override;

    /// Why the run was stopped, set together with FunctionalScheduler::stop.
    struct Ending {
        std::string state, detail;
        int status = 0;
    };
    /// Ends the run. `by`: in detailed mode, the core that ended it.
    void end(Ending e, const x86::Core *by = nullptr);
    /// As end, for a marker on the console. Functional mode stops between two rounds of slices, so that the guest does
    /// not notice the stop.
    void console_showed(const std::string &marker);
    /// To be called when `ending` has been reported: replaces it by the next ending, or by none. While there is an
    /// ending, no core may run.
    void clear_ending();
    /// Whether no core can ever go on: all wait with interrupts off, or for a start-up interrupt, and no interrupt is
    /// under way to any.
    bool hopeless() const;

    // x86::Platform
    std::uint64_t mmio_read(x86::Core &, PhysAddr, unsigned size) override;
    void mmio_write(x86::Core &, PhysAddr, std::uint64_t value, unsigned size) override;
    std::uint64_t io_read(x86::Core &, std::uint16_t port, unsigned size) override;
    void io_write(x86::Core &, std::uint16_t port, std::uint64_t value, unsigned size) override;
    std::uint64_t cycles(x86::Core &c) override { return c.timed ? c.timed->cycles() : scheduler.cycles(); }
    bool msr_read(x86::Core &, std::uint32_t msr, std::uint64_t &value) override;
    bool msr_write(x86::Core &, std::uint32_t msr, std::uint64_t value) override;
    void unknown_msr(x86::Core &, std::uint32_t msr, bool) override;
    void m5op(x86::Core &, unsigned function) override;
    void probed(x86::Core &, unsigned probe, const x86::Probed &before) override;
    void system_called(x86::Core &) override;
    void returned(x86::Core &, Addr at) override;
    // dev::TimeSource
    Tick now() const override { return detailed ? processes->serial_now(queue) : scheduler.now(); }

    void archive(Archive &);
    /// Called whenever a core's local APIC raises a signal.
    void on_signal(unsigned core, std::function<void()> f);
    /// The shortest time that an access to a device takes.
    static Tick shortest_access(Clock core_clock);
    /// Detailed mode: the present tick for a core: the board's in a serial phase, otherwise that of the core's queue.
    Tick present_of(const x86::Core &c) const { return processes->in_serial_phase() ? now() : c.timed->queue().now(); }
    /// Detailed mode: sets the latency of an interrupt from one core to another.
    void interrupts_travel(std::function<Tick(unsigned from, unsigned to)> way);
    /// Detailed mode: from now on, device transfers are transactions of this port, whose events are in this queue
    /// (null: transfers take no time, as in functional mode). `stored` is called for each line, or part of one, that a
    /// transfer has written. No transfer may be under way.
    void transfers_go(Port *port, const EventQueue *port_queue, std::function<void(Addr dram, unsigned size)> stored);
    bool transfers_under_way() const;
    /// Interrupts under way arrive at once.
    void interrupts_arrive();

    const SystemConfig &config;
    GuestMemory &memory;
    PhysMap phys;
    EventQueue &queue;
    LogicalProcesses *processes = &LogicalProcesses::one(); ///< of detailed mode's machine
    FunctionalScheduler scheduler;
    std::vector<std::unique_ptr<x86::BlockCache>> blocks; ///< one for each host thread that runs cores
    std::vector<std::unique_ptr<x86::Core>> cores;

    std::string console; ///< written by the guest and not fetched yet
    Ending ending;
    std::atomic<std::uint64_t> operations =
        0;                                 ///< by m5 workend (not work item 0), load generators, or counted at probes
    std::unique_ptr<ProgramProbes> probes; ///< null: none
    std::map<std::uint32_t, std::uint64_t> unknown_msrs; ///< by number: accesses to what the model lacks, for the log
    const x86::Core *died = nullptr;                     ///< detailed mode: the core that ended the run
    bool detailed = false;                               ///< the clock is the event queue's
    dev::Firmware firmware;                              ///< what the tables say
    Addr rsdp = 0;

    /// Empty without a network card.
    dev::NetworkReport network() const;
    /// The rings of all devices, at physical addresses.
    std::vector<dev::RingArea> rings() const;

    void console_input(std::string_view bytes);
    void console_written(char c);

  private:
    /// When an ending happened, and on which core, in detailed mode. In functional mode all moments are equal, because
    /// endings arrive in order.
    using Moment = std::pair<Tick, unsigned>;
    static constexpr Moment kFunctional{0, ~0u};
    void keep(Ending, Moment);

    std::mutex shared_; ///< guards what cores of several threads reach at once: the endings, unknown_msrs
    Moment ended_at_;   ///< of `ending`
    std::vector<std::pair<Moment, Ending>> later_; ///< endings that follow it, in their order
    struct Devices;
    std::unique_ptr<Devices> devices_;
    std::string console_tail_; ///< as long as the longest marker
    dev::AddressSpace mmio_, ports_;

    void describe_memory();
    void build_firmware();
};

} // namespace moscope
