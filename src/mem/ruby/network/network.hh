// SPDX-License-Identifier: BSD-3-Clause
// The network as the rest of the machine sees it. The hot paths carry no virtual call: controllers push
// messages into the Ingress of their router (a Component with a plain wake function), and the network puts
// them into the destinations' buffers with `MessageBuffer::deliver`, at arrival ticks that may lie ahead. The
// virtual functions here are for building, statistics and reports. Times are femtoseconds.
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "mem/ruby/network/params.hh"
#include "mem/ruby/network/stats.hh"
#include "mem/ruby/runtime/jitter.hh"
#include "mem/ruby/runtime/message_buffer.hh"
#include "mem/ruby/runtime/trace_hook.hh"
#include "sim/event_queue.hh"

namespace moscope::ruby {

/// A controller as ports name it; the position in a list of these is its NodeIndex.
struct ControllerName {
    std::string machine;
    int version = 0;
};

/// A message somewhere in the network, for reports and functional accesses.
struct HeldMessage {
    Message *message;
    Tick since;        ///< at this place since
    std::string place; ///< where, and what it waits for
};

class Network {
  public:
    explicit Network(unsigned nodes) : nodes_(nodes), from_network_(std::size_t{nodes} * kMaxVnets) {}
    virtual ~Network() = default;
    Network(const Network &) = delete;
    Network &operator=(const Network &) = delete;

    // ---- building
    /// Where the "To" buffers of a controller lead.
    virtual Ingress *ingress(NodeIndex node) = 0;
    /// Registers a buffer that the network fills. If it is declared ordered, its virtual network keeps the
    /// order of messages of each pair of controllers.
    void attach_from(NodeIndex node, unsigned vnet, MessageBuffer *buffer);
    /// Registers a buffer that leads into the network; needed for those with a capacity or on an ordered network.
    /// A message's place in a bounded buffer is free once the network has sent on all parts of the message.
    void attach_to(NodeIndex node, unsigned vnet, MessageBuffer *buffer);

    /// Called after all buffers are registered. `controllers`: those that read the buffers, by node. Lets the network
    /// leave out wake-ups of its own that change nothing.
    virtual void open_direct_ways(const std::vector<AbstractController *> &controllers) { (void)controllers; }

    // ---- for the errors of protocols from outside the project
    /// The network of the machine whose events run, as NodeMap::current is its map.
    static inline const Network *current = nullptr;
    bool listens(NodeIndex node, unsigned vnet) const {
        return from_network_[std::size_t{node} * kMaxVnets + vnet] != nullptr;
    }
    /// Throws ProtocolError: the destination has no buffer for the message.
    [[noreturn]] void no_destination(const Message &m, NodeIndex node) const;

    // ---- bounds for the cores' lookahead
    /// Least time from any event in the network to a delivery at this controller that it causes.
    virtual Tick min_delivery_latency(NodeIndex node) const = 0;
    /// Least time from a message's entry at one controller to its delivery at another.
    virtual Tick min_path_latency(NodeIndex from, NodeIndex to) const = 0;

    /// Virtual networks, by bit, on which a message has gone through a router instead of directly to its receiver, as
    /// far as this controller's chip knows. A message in a router is nearer to its destination than its sender is. Null:
    /// the network has no direct ways.
    virtual const std::uint32_t *routed_vnets(NodeIndex) const { return nullptr; }

    /// From now on `source` chooses the delays instead of the random generator; null: random again. Without random
    /// delays (NetworkParams::jitter) it has no effect. No message may be under way: its receiver wakes as late as the
    /// message's random delay allows.
    void set_delays(DelaySource *source) { jitter_.set_source(source); }

    // ---- observation
    TraceHook *trace = nullptr; ///< if set, called for hops and deliveries
    virtual void set_trace(TraceHook *hook) { trace = hook; }
    /// Counts since the beginning or the last reset. Link and port occupation is counted when it is granted.
    virtual NetworkStats stats() const = 0;
    virtual void reset_stats(Tick now) = 0;
    /// Calls f for each message held anywhere in the network (not those in the destinations' buffers).
    virtual void for_each_held(const std::function<void(const HeldMessage &)> &f) = 0;
    /// Messages held; 0 when a checkpoint may be taken.
    std::size_t held();
    /// One line of text for each message held, oldest first, for the watchdog.
    std::vector<std::string> stuck_report(Tick now);

  protected:
    friend class Router;

    MessageBuffer *&from_network(NodeIndex node, unsigned vnet) {
        return from_network_[std::size_t{node} * kMaxVnets + vnet];
    }
    bool has_bounded_sources() const { return !bounded_to_.empty(); }
    /// A message of `vnet` from `source` has gone on: its place in a bounded buffer is free.
    void free_source(NodeIndex source, unsigned vnet) {
        if (__builtin_expect(!bounded_to_.empty(), 0))
            if (MessageBuffer *b = bounded_to_[std::size_t{source} * kMaxVnets + vnet])
                --b->in_network_entry;
    }
    /// Throws ProtocolError.
    [[noreturn]] void bad_message(const Message &m, const char *what) const;

    void keep_order(unsigned vnet);

    unsigned nodes_;
    std::vector<MessageBuffer *> from_network_; ///< [node][vnet]
    std::array<std::vector<MessageBuffer *>, kMaxVnets> to_network_;
    std::vector<MessageBuffer *> bounded_to_; ///< [node][vnet]; empty while there is none
    Jitter jitter_;
};

/// Builds the network that the parameters (validated) describe. `controllers`: in the order of NodeIndex. UserError if
/// the parameters' ports do not name one of them (kind ideal needs no ports).
std::unique_ptr<Network> make_network(EventQueue &queue, const NetworkParams &params,
                                      const std::vector<ControllerName> &controllers);
/// The same with a queue for each router, by its number, or one queue for all.
std::unique_ptr<Network> make_network(const std::vector<EventQueue *> &queues, const NetworkParams &params,
                                      const std::vector<ControllerName> &controllers);

} // namespace moscope::ruby
