// SPDX-License-Identifier: BSD-3-Clause
// The network without a topology.
#include "mem/ruby/network/ideal.hh"

#include "mem/ruby/runtime/message_pool.hh"

namespace moscope::ruby {

IdealNetwork::Hub::Hub(EventQueue &queue, IdealNetwork &net)
    : Component(queue, "network", [](Component &c, Tick now) { static_cast<Hub &>(c).network.wake(now); }),
      network(net) {
    ingress.router = this;
}

IdealNetwork::IdealNetwork(EventQueue &queue, const NetworkParams &params, unsigned nodes)
    : Network(nodes), latency_(params.ideal_latency), hub_(queue, *this) {
    jitter_.init(params.jitter, params.seed, nodes);
}

void IdealNetwork::wake(Tick now) {
    auto &queue = hub_.ingress.queue;
    while (queue.front_tick() <= now) {
        Message *m = queue.front().item;
        queue.pop();
        ++stats_.sent;
        free_source(m->source, m->vnet);
        if (m->dest_offset == 0 || m->destination().isEmpty())
            bad_message(*m, "has no destination");
        NetDest rest = m->destination();
        while (true) {
            const NodeIndex node = rest.first_index();
            rest.remove_index(node);
            const bool last = rest.isEmpty();
            Message *part = last ? m : message_pool().clone(m);
            deliver(part, node, now);
            if (last)
                break;
        }
    }
    hub_.schedule_no_later_than(queue.front_tick());
}

void IdealNetwork::deliver(Message *m, NodeIndex node, Tick now) {
    MessageBuffer *buffer = node < nodes_ ? from_network(node, m->vnet) : nullptr;
    if (!buffer)
        no_destination(*m, node);
    m->destination().clear();
    m->destination().add_index(node);
    m->account(Segment::queue, now);
    m->account(Segment::crossbar, now + latency_);
    Tick arrival = now + latency_;
    if (jitter_.on()) {
        jitter_.draw(*m, node, now);
        arrival = jitter_.delay(*m, node, arrival);
    }
    if (__builtin_expect(trace != nullptr, 0))
        arrival += trace->delivered(*m, node, arrival);
    m->account(Segment::queue, arrival);
    ++stats_.delivered;
    ++stats_.delivered_by_hops[0];
    stats_.latency += arrival - now;
    stats_.queueing += arrival - now - latency_;
    buffer->deliver(m, arrival);
}

NetworkStats IdealNetwork::stats() const {
    NetworkStats s;
    s.kind = "ideal";
    s.channel_names = {"all"};
    s.channel = {stats_};
    return s;
}

void IdealNetwork::for_each_held(const std::function<void(const HeldMessage &)> &f) {
    auto &queue = hub_.ingress.queue;
    for (unsigned i = 0; i < queue.size(); ++i)
        f({queue.at(i).item, queue.at(i).tick, "network entry"});
}

} // namespace moscope::ruby
