// SPDX-License-Identifier: BSD-3-Clause
// What all networks share: registration of buffers, random delays, reports.
#include "mem/ruby/network/network.hh"

#include <algorithm>

#include "base/error.hh"
#include "mem/ruby/network/hypertransport.hh"
#include "mem/ruby/network/ideal.hh"
#include "mem/ruby/runtime/foreign/listeners.hh"

namespace moscope::ruby {

void Network::attach_from(NodeIndex node, unsigned vnet, MessageBuffer *buffer) {
    MOSCOPE_CHECK(node < nodes_ && vnet < kMaxVnets);
    from_network(node, vnet) = buffer;
    if (buffer->ordered)
        keep_order(vnet);
}

void Network::attach_to(NodeIndex node, unsigned vnet, MessageBuffer *buffer) {
    MOSCOPE_CHECK(node < nodes_ && vnet < kMaxVnets);
    buffer->ingress = ingress(node);
    to_network_[vnet].push_back(buffer);
    if (buffer->ordered)
        keep_order(vnet);
    else if (jitter_.ordered(vnet))
        buffer->keep_order();
    if (buffer->capacity == 0)
        return;
    if (bounded_to_.empty())
        bounded_to_.resize(from_network_.size());
    bounded_to_[std::size_t{node} * kMaxVnets + vnet] = buffer;
}

/// A virtual network is ordered if any buffer on it is declared so.
void Network::keep_order(unsigned vnet) {
    jitter_.set_ordered(vnet);
    for (MessageBuffer *b : to_network_[vnet])
        b->keep_order();
}

std::size_t Network::held() {
    std::size_t n = 0;
    for_each_held([&n](const HeldMessage &) { ++n; });
    return n;
}

std::vector<std::string> Network::stuck_report(Tick now) {
    std::vector<HeldMessage> all;
    for_each_held([&all](const HeldMessage &h) { all.push_back(h); });
    std::stable_sort(all.begin(), all.end(), [](const auto &a, const auto &b) { return a.since < b.since; });
    std::vector<std::string> lines;
    for (const auto &h : all) {
        char line[32];
        std::snprintf(line, sizeof line, "0x%llx", static_cast<unsigned long long>(h.message->line));
        std::string to;
        h.message->destination().for_each([&to](NodeIndex n) { to += (to.empty() ? "" : ",") + std::to_string(n); });
        lines.push_back("message " + std::to_string(h.message->uid) + " line " + line + " from node " +
                        std::to_string(h.message->source) + " to node " + to + " vnet " +
                        std::to_string(h.message->vnet) + ": " + h.place + ", for " +
                        std::to_string(std::max<Tick>(0, now - h.since) / kTicksPerNs) + " ns");
    }
    return lines;
}

namespace {

/// `L1Cache-3`; the number alone where no machine has been built.
std::string name_of(NodeIndex node) {
    const NodeMap *nodes = NodeMap::current;
    if (!nodes || node >= nodes->total)
        return "node " + std::to_string(node);
    return std::string(MachineType_to_string(nodes->id[node].type)) + "-" + std::to_string(nodes->id[node].num);
}

std::string line_text(const Message &m) {
    char line[32];
    std::snprintf(line, sizeof line, "0x%llx", static_cast<unsigned long long>(m.line));
    return line;
}

} // namespace

void Network::no_destination(const Message &m, NodeIndex node) const {
    throw ProtocolError("message of line " + line_text(m) + " from " + name_of(m.source) + " to " + name_of(node) +
                            ", which has no buffer from virtual network " + std::to_string(m.vnet),
                        m.line);
}

void must_listen(const Message &m, NodeIndex node) {
    if (Network::current && !Network::current->listens(node, m.vnet))
        Network::current->no_destination(m, node);
}

void Network::bad_message(const Message &m, const char *what) const {
    throw ProtocolError("message of line " + line_text(m) + " from " + name_of(m.source) + " on virtual network " +
                            std::to_string(m.vnet) + ": " + what,
                        m.line);
}

std::unique_ptr<Network> make_network(const std::vector<EventQueue *> &queues, const NetworkParams &params,
                                      const std::vector<ControllerName> &controllers) {
    if (params.kind == NetworkParams::Kind::ideal)
        return std::make_unique<IdealNetwork>(*queues.front(), params, static_cast<unsigned>(controllers.size()));
    return std::make_unique<HyperTransport>(queues, params, controllers);
}

std::unique_ptr<Network> make_network(EventQueue &queue, const NetworkParams &params,
                                      const std::vector<ControllerName> &controllers) {
    return make_network(std::vector{&queue}, params, controllers);
}

} // namespace moscope::ruby
