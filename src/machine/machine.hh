// SPDX-License-Identifier: BSD-3-Clause
// A machine built from its elaborated description (moscope.machine/1): a protocol library's controllers, the
// network, DRAM and guest memory, with one port per core and one per DMA controller. The user of a machine adds the cores.
// Several machines may exist in a host process, one after the other.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "base/types.hh"
#include "cpu/x86/timed/timed_params.hh"
#include "mem/port.hh"
#include "mem/ruby/runtime/controller.hh"
#include "mem/ruby/runtime/slicc_util.hh"
#include "mem/what_if.hh"
#include "sim/parallel/logical_processes.hh"

namespace moscope {

namespace ruby {
class DelaySource;
class DMASequencer;
} // namespace ruby

class GuestMemory;

struct MachineOptions {
    std::uint64_t seed = 1;
    bool zero_lookahead = false;       ///< cores never run ahead (for comparison)
    Tick watchdog = 1'000'000'000'000; ///< a request older than this (1 ms) is a protocol error; 0: off
    /// 0: one logical process. Otherwise each chip is one, and this many host threads run them
    /// (sim/parallel/logical_processes.hh).
    unsigned threads = 0;
    /// With threads: upper bound of the lookahead, because chips and devices affect each other not only by messages.
    Tick lookahead_at_most = kNever;
    /// With threads: one logical process if the machine's chips cannot be separated. If not set, that is a UserError.
    bool threads_if_possible = false;
};

class Machine {
  public:
    /// description: JSON text. library: path of the protocol's shared library. UserError if they do not fit.
    Machine(const std::string &description, const std::string &library, MachineOptions options = {});
    Machine(const nlohmann::json &description, const std::string &library, MachineOptions options = {});
    ~Machine();

    /// The logical processes: one, or one for each chip.
    LogicalProcesses &processes();
    const LogicalProcesses &processes() const;
    EventQueue &queue(); ///< of the first chip
    EventQueue &queue_of_core(unsigned core);
    /// Earliest pending event; tick of the latest event; number of events.
    Tick next() const;
    Tick now() const;
    std::uint64_t events() const;
    /// Messages that controllers and the network hold.
    std::int64_t messages() const;
    unsigned cores() const;
    const x86::TimedParams &pipeline() const; ///< of a core in detailed mode
    unsigned nodes() const;
    unsigned chip_of_core(unsigned core) const;
    /// Latency in ticks of a posted packet without data from one chip to another on idle links, including crossbars.
    Tick command_latency(unsigned from_chip, unsigned to_chip) const;
    Port &port(unsigned core);
    unsigned dma_ports() const;
    Port &dma_port(unsigned i);
    /// How many accesses of each device port may be in the protocol at a time; one unless set.
    void allow_device_accesses(unsigned in_flight);
    ruby::DMASequencer &dma(unsigned i) const;

    /// Guest memory, by physical address. In checking mode it is what DRAM holds: caches may be newer.
    std::byte *memory();
    std::uint64_t memory_bytes() const;
    GuestMemory &guest_memory();
    /// First physical address of a node's memory, and its size.
    Addr node_base(unsigned node) const;
    std::uint64_t node_bytes(unsigned node) const;
    /// From here on, treats cores' accesses to these lines as mem/what_if.hh describes. Nothing may be in flight.
    /// UserError if a line is to bypass the protocol and there are several logical processes.
    void treat_otherwise(WhatIf lines);
    bool checks_data() const;
    const ruby::ProtocolInfo &protocol() const;
    const std::vector<ruby::AbstractController *> &controllers() const;
    ruby::AbstractController *controller(ruby::MachineType type, unsigned version) const;

    /// Runs until no event is pending before `until`. Protocol errors carry the recent transitions of the line and what is stuck.
    void run(Tick until = kNever);
    /// The hook is called for every message, hop and transition; null: none. UserError with several logical processes.
    void set_trace(ruby::TraceHook *hook);
    /// Chooses message delays where the description has random ones (network.jitter_fs); null: random again. The source must
    /// outlive the machine, or be taken away before. Only while no message is under way.
    void set_delays(ruby::DelaySource *source);
    /// Stops the watchdog until the next run(). To be called when no access is in flight and other components continue
    /// to use the queue.
    void come_to_rest();
    /// Accesses of all ports in flight.
    unsigned in_flight() const;
    /// The line's bytes as the whole machine holds them now (checking mode; nothing in flight for it). False: no cache
    /// holds the line, and it is outside memory.
    bool functional_read(Addr line, std::byte *bytes);
    /// The last transitions of a line as text, a line of text each.
    std::string line_history(Addr line) const;
    /// Empty if caches hold at most one writable copy of each line, and no readable copy beside a writable one.
    /// Otherwise says what is wrong. Only meaningful with nothing in flight.
    std::string check_single_writer();

    /// Accesses by core, transition counts by controller, network, DRAM (docs/statistics.md).
    nlohmann::ordered_json stats() const;
    void reset_stats();

  private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

} // namespace moscope
