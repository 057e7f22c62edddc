// SPDX-License-Identifier: BSD-3-Clause
// A machine built from its elaborated description (moscope.machine/1): a protocol library's controllers, the
// network, DRAM and guest memory, with one port per core and one per DMA controller. Cores are added by who
// uses it. One Machine is run by one host thread, or by several in step; several machines may exist in a process, one after
// the other.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "base/types.hh"
#include "cpu/x86/timed/timed_params.hh"
#include "mem/port.hh"
#include "mem/ruby/runtime/controller.hh"
#include "mem/ruby/runtime/slicc_util.hh"
#include "sim/event_queue.hh"

namespace moscope {

namespace ruby {
class DMASequencer;
}

class GuestMemory;

struct MachineOptions {
    std::uint64_t seed = 1;
    bool zero_horizon = false;      ///< cores never run ahead (for comparison)
    Tick watchdog = 50'000'000'000; ///< a request older than this (50 us) is a protocol error; 0: off
    /// 0: one queue for all. Else each chip has a queue of its own, and so many host threads run them (sim/parallel/parallel_scheduler.hh).
    unsigned threads = 0;
    Tick window_at_most =
        kNever; ///< with threads: something else of one chip than a message reaches another, or a device, so soon
    bool threads_if_possible =
        false; ///< one queue for all where chips of the machine cannot be told apart; else that is a UserError
};

class Machine {
  public:
    /// description: JSON text. library: path of the protocol's shared library. UserError if they do not fit.
    Machine(const std::string &description, const std::string &library, MachineOptions options = {});
    Machine(const nlohmann::json &description, const std::string &library, MachineOptions options = {});
    ~Machine();

    EventQueue &queue(); ///< of the first chip, where devices are
    EventQueue &queue_of_core(unsigned core);
    bool chips_apart() const; ///< each chip has a queue of its own
    unsigned chips() const;   ///< with a queue of their own; else 1
    EventQueue &queue_of_chip(unsigned chip);
    /// Where chips are apart: `queue` is run by `between`, which is called while they are at rest (sim/parallel/parallel_scheduler.hh).
    void run_aside(EventQueue &queue, std::function<void(Tick end)> between);
    /// Called before a host thread runs a chip that another has run last.
    void on_take(std::function<void(unsigned chip, unsigned thread)>);
    /// From `between`: work in parts, for all threads, before anything goes on (sim/parallel/parallel_scheduler.hh).
    void share_between(unsigned parts, std::function<void(unsigned part)> work);
    /// From a component: `between` has something to do when this window of time has ended.
    void ask_between();
    /// Earliest pending wake-up.
    Tick next() const;
    /// The tick of the last wake-up, and how many there have been.
    Tick now() const;
    std::uint64_t events() const;
    /// Messages that controllers and the network hold.
    std::int64_t messages() const;
    unsigned cores() const;
    const x86::TimedParams &pipeline() const; ///< of a core in detailed mode
    unsigned nodes() const;
    unsigned chip_of_core(unsigned core) const;
    /// A posted packet without data from one chip to another on idle links, crossbars included.
    Tick command_latency(unsigned from_chip, unsigned to_chip) const;
    Port &port(unsigned core);
    unsigned dma_ports() const;
    Port &dma_port(unsigned i);
    ruby::DMASequencer &dma(unsigned i) const;

    /// Guest memory, by physical address. In checking mode it is what DRAM holds: caches may be newer.
    std::byte *memory();
    std::uint64_t memory_bytes() const;
    GuestMemory &guest_memory();
    /// First physical address of a node's memory, and its size.
    Addr node_base(unsigned node) const;
    std::uint64_t node_bytes(unsigned node) const;
    bool checks_data() const;
    const ruby::ProtocolInfo &protocol() const;
    const std::vector<ruby::AbstractController *> &controllers() const;
    ruby::AbstractController *controller(ruby::MachineType type, unsigned version) const;

    /// Runs until no event is pending before `until`. Protocol errors carry the recent messages of the line
    /// and what is stuck.
    void run(Tick until = kNever);
    /// Told of every message, hop and transition; null: nobody.
    void set_trace(ruby::TraceHook *hook);
    /// Accesses of all ports in flight.
    unsigned in_flight() const;
    /// The line's bytes as the whole machine holds them now (checking mode; nothing in flight for it).
    bool functional_read(Addr line, std::byte *bytes);
    /// Empty if at most one writable copy and no other readable copy beside it exists of any line, else what is
    /// wrong. Only meaningful with nothing in flight.
    std::string check_single_writer();

    /// JSON text: accesses by core, transition counts by controller, network, DRAM (docs/statistics.md).
    nlohmann::ordered_json stats() const;
    std::string stats_json() const;
    void reset_stats();

  private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

} // namespace moscope
