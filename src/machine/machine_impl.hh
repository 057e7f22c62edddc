// SPDX-License-Identifier: BSD-3-Clause
// The parts of a built machine; shared by construction, running and reporting.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "machine/machine.hh"
#include "mem/dram/controller.hh"
#include "mem/guest_memory.hh"
#include "mem/ruby/network/network.hh"
#include "mem/ruby/runtime/dma_sequencer.hh"
#include "mem/ruby/runtime/memory_bridge.hh"
#include "mem/ruby/runtime/sequencer.hh"
#include "sim/parallel/parallel_scheduler.hh"

namespace moscope {

/// The DRAM controller of a node as the memory bridge wants it.
struct NodeDram {
    std::unique_ptr<dram::DramController> controller;
    ruby::MemoryBridge<NodeDram> *bridge = nullptr;

    bool can_accept(bool write) { return controller->can_accept(write); }
    void push(Addr a, bool write, Tick now, void *context) {
        controller->push(dram::DramRequest{a, write, now, context}, now);
    }
};

/// Watches for requests that never finish.
class Watchdog : public Component {
  public:
    Watchdog(EventQueue &queue, const Machine &machine, Tick limit)
        : Component(queue, "watchdog", wake_entry), machine_(machine), limit_(limit) {}
    /// Looks whether a request is older than the limit at this moment.
    void look_for_old(Tick now) const;
    Tick limit() const { return limit_; }
    /// Begins, or goes on, watching.
    void arm() {
        if (limit_ > 0 && next_wake() == kNever)
            schedule(queue().now() + limit_);
    }

  private:
    static void wake_entry(Component &c, Tick now) { static_cast<Watchdog &>(c).look(now); }
    void look(Tick now);
    const Machine &machine_;
    Tick limit_;
};

struct Machine::Impl {
    EventQueue queue; ///< of the first chip, or of all
    std::vector<std::unique_ptr<EventQueue>> other_queues;
    std::vector<EventQueue *> queues; ///< by chip where each has its own, else one
    MachineOptions options;
    std::string name;
    void *library = nullptr;
    const ruby::ProtocolInfo *protocol = nullptr;
    ruby::NodeMap nodes;
    ruby::AddressMap addresses;
    std::unique_ptr<GuestMemory> memory;
    std::vector<ruby::Foresight> foresight; ///< by queue, as those below
    std::vector<ruby::History> history;
    std::vector<std::unique_ptr<ruby::MessagePool>> pools; ///< by thread beside the first, from the second on
    std::unique_ptr<Lockstep> lockstep;                    ///< null: there is one queue
    unsigned cores_per_chip = 1;
    x86::TimedParams pipeline;

    ruby::NetworkParams network_params;
    std::unique_ptr<ruby::Network> network;
    std::vector<std::unique_ptr<ruby::AbstractController>> owned_controllers;
    std::vector<ruby::AbstractController *> controllers; ///< by NodeIndex
    std::vector<std::unique_ptr<ruby::CacheMemory>> caches;
    std::vector<std::unique_ptr<ruby::DirectoryMemory>> directories;
    std::vector<std::unique_ptr<ruby::Sequencer>> sequencers; ///< by core
    std::vector<ruby::Sequencer *> requestors;                ///< the same, for controllers
    std::vector<std::unique_ptr<ruby::DMASequencer>> dma;
    std::vector<std::unique_ptr<NodeDram>> dram;
    std::vector<std::unique_ptr<ruby::MemoryBridge<NodeDram>>> bridges;
    std::vector<unsigned> chip_of_core;
    std::unique_ptr<Watchdog> watchdog;
    ruby::TraceHook *trace = nullptr;
    std::vector<dram::ChannelStats> dram_base; ///< DRAM counts at the last reset, node by node, channel by channel
    std::vector<std::uint64_t> count_base;     ///< transition counts at the last reset, controller by controller

    ~Impl();
    void build(Machine &machine, const nlohmann::json &j, const std::string &library_path);
    void build_controllers(const nlohmann::json &j);
    void build_memory(const nlohmann::json &j);
    void connect(const nlohmann::json &j);
    bool chips_apart() const { return queues.size() > 1; }
    EventQueue &queue_of(unsigned chip) { return *queues[chip % queues.size()]; }
    void separate_chips(const nlohmann::json &j);
    void go_in_step();
    /// The latest moment of any queue.
    Tick now() const { return lockstep ? lockstep->now() : queue.now(); }
    void run_in_step(Tick until);
    Tick window = 0;          ///< in which chips do not affect each other
    Tick look_for_old_at = 0; ///< run_in_step: not before
    void set_horizon(Port &port, ruby::AbstractController &c);
    void make_current() const {
        ruby::NodeMap::current = &nodes;
        ruby::AddressMap::current = &addresses;
    }
    /// What a protocol error should show beside its first line.
    std::string context(Addr line) const;
    std::string stuck() const;
};

} // namespace moscope
