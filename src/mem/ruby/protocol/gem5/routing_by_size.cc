// SPDX-License-Identifier: BSD-3-Clause
#include "gem5/routing_by_size.hh"

#include "base/logging.hh"
#include "mem/ruby/network/Network.hh"
#include "mem/ruby/slicc_interface/Message.hh"

namespace gem5 {
namespace ruby {

void RoutingBySize::addOutPort(LinkID link_id, const std::vector<MessageBuffer *> &, const NetDest &routing_table_entry,
                               const PortDirection &, int) {
    if (routing_table_entry.isEmpty()) {
        fatal_if(ports_.empty(), "%s: a link for another length stands before all others", name());
        ports_.back().links.push_back(link_id);
    } else {
        ports_.push_back({routing_table_entry, {link_id}});
    }
}

void RoutingBySize::route(const Message &msg, int vnet, bool, std::vector<RouteInfo> &out_links) {
    const bool data = Network::MessageSizeType_to_int(msg.getMessageSize()) >
                      Network::MessageSizeType_to_int(MessageSizeType_Control);
    const size_t way = ways_.at(2 * vnet + data);
    NetDest rest = msg.getDestination();
    for (const Port &port : ports_) {
        if (!rest.intersectionIsNotEmpty(port.reach))
            continue;
        const LinkID link = port.links.size() == 1 ? port.links.front() : port.links.at(way);
        out_links.emplace_back(rest.AND(port.reach), link);
        rest.removeNetDest(port.reach);
    }
    fatal_if(!rest.isEmpty(), "%s: no link towards a message's destination", name());
}

} // namespace ruby
} // namespace gem5
