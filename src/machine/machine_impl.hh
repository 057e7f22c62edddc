// SPDX-License-Identifier: BSD-3-Clause
// The parts of a built machine; shared by construction, running and reporting.
#pragma once

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "machine/machine.hh"
#include "mem/dram/controller.hh"
#include "mem/dram/dram_prefetcher.hh"
#include "mem/guest_memory.hh"
#include "mem/ruby/network/network.hh"
#include "mem/ruby/runtime/dma_sequencer.hh"
#include "mem/ruby/runtime/foreign/direct_wire.hh"
#include "mem/ruby/runtime/memory_bridge.hh"
#include "mem/ruby/runtime/sequencer.hh"

namespace moscope {

class ConfigReader;

/// A node's DRAM controller and its prefetcher, with the interface that the memory bridge expects.
struct NodeDram {
    std::unique_ptr<dram::DramController> controller;
    std::unique_ptr<dram::DramPrefetcher> prefetcher; ///< null: none
    ruby::MemoryBridge<NodeDram> *bridge = nullptr;

    bool can_accept(bool write) { return controller->can_accept(write); }
    void push(Addr a, bool write, Tick now, void *context) {
        if (__builtin_expect(prefetcher != nullptr, 0)) {
            if (write)
                prefetcher->wrote(a);
            else if (prefetcher->read(a, now, context)) {
                prefetcher->learn(a, now);
                return;
            }
        }
        controller->push(dram::DramRequest{a, write, now, context}, now);
        if (__builtin_expect(prefetcher != nullptr, 0) && !write)
            prefetcher->learn(a, now);
    }
    void done(void *context, Tick when) {
        if (!prefetcher || !prefetcher->done(context, when))
            bridge->done(context, when);
    }
};

/// Watches for requests that never finish.
class Watchdog : public Component {
  public:
    Watchdog(EventQueue &queue, const Machine &machine, const std::vector<ruby::Sequencer *> &sequencers, Tick limit)
        : Component(queue, "watchdog", wake_entry), machine_(machine), sequencers_(sequencers), limit_(limit) {}
    /// ProtocolError if a request is older than the limit.
    void look_for_old(Tick now) const;
    Tick limit() const { return limit_; }
    /// Starts watching, if it does not yet.
    void arm() {
        if (limit_ > 0 && next_wake() == kNever)
            schedule(queue().now() + limit_);
    }

  private:
    static void wake_entry(Component &c, Tick now) { static_cast<Watchdog &>(c).look(now); }
    void look(Tick now);
    std::vector<std::uint64_t> counts() const;
    std::string polling() const;
    const Machine &machine_;
    const std::vector<ruby::Sequencer *> &sequencers_; ///< of all cores
    std::vector<std::uint64_t>
        before_; ///< how often each transition of each controller had been taken at the last look
    Tick limit_;
};

struct Machine::Impl {
    LogicalProcesses processes; ///< one for each chip, or one
    MachineOptions options;
    std::string name;
    void *library = nullptr;
    const ruby::ProtocolInfo *protocol = nullptr;
    ruby::NodeMap nodes;
    ruby::AddressMap addresses;
    std::unique_ptr<GuestMemory> memory;
    std::vector<ruby::History> history;                    ///< by logical process
    std::vector<std::unique_ptr<ruby::MessagePool>> pools; ///< by thread, from the second on
    unsigned cores_per_chip = 1;
    x86::TimedParams pipeline;
    std::vector<ruby::L1Prefetcher::Params> l1_prefetchers; ///< of each core

    ruby::NetworkParams network_params;
    std::unique_ptr<ruby::Network> network;
    std::vector<std::unique_ptr<ruby::AbstractController>> owned_controllers;
    std::vector<ruby::AbstractController *> controllers; ///< by NodeIndex
    std::vector<std::unique_ptr<ruby::CacheMemory>> caches;
    std::vector<std::unique_ptr<ruby::DirectoryMemory>> directories;
    std::vector<std::unique_ptr<ruby::Sequencer>> sequencers; ///< by core
    std::vector<ruby::Sequencer *> requestors;                ///< the same, for controllers
    std::vector<std::unique_ptr<ruby::DMASequencer>> dma;
    std::vector<std::unique_ptr<ruby::DirectWire>> wires;
    std::vector<std::unique_ptr<NodeDram>> dram;
    std::vector<std::unique_ptr<ruby::MemoryBridge<NodeDram>>> bridges;
    std::vector<unsigned> chip_of_core;
    std::unique_ptr<Watchdog> watchdog;
    ruby::TraceHook *trace = nullptr;
    std::vector<dram::ChannelStats> dram_base; ///< DRAM counts at the last reset, node by node, channel by channel
    WhatIf what_if;
    std::vector<std::uint64_t> count_base; ///< transition counts at the last reset, controller by controller

    ~Impl();
    void build(Machine &machine, const nlohmann::json &description, const std::string &library_path);
    void build_controllers(const ConfigReader &machine);
    void build_controller(const ruby::MachineInfo &info, unsigned version, const ConfigReader &from,
                          const Clock &clock);
    void set_parameters(ruby::AbstractController &ctrl, const ConfigReader &params);
    void add_sequencer(ruby::AbstractController &ctrl, ruby::MessageBuffer &mandatory, const ConfigReader &controller,
                       const Clock &clock, std::size_t first_cache, const std::string &param, std::uint16_t core);
    void build_memory(const ConfigReader &machine);
    void connect(const ConfigReader &machine);
    std::set<const ruby::MessageBuffer *> connect_directly(const ConfigReader &machine);
    void separate_chips(const ConfigReader &machine);
    void start_threads();
    void run(Tick until);
    Tick lookahead = 0;       ///< of the logical processes, if there are several
    Tick look_for_old_at = 0; ///< run() does not look for old requests before this tick
    void set_lookahead(Port &port, ruby::AbstractController &c);
    void make_current() const {
        ruby::NodeMap::current = &nodes;
        ruby::AddressMap::current = &addresses;
        ruby::Network::current = network.get();
    }
    /// The lines of a protocol error below the first.
    std::string context(Addr line) const;
    std::string stuck() const;
};

} // namespace moscope
