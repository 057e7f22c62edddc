// SPDX-License-Identifier: BSD-3-Clause
// Routing for gem5's simple network in which a link's latency depends on the length of the packet, as on a real wire,
// where a packet has arrived when its last byte has. A gem5 link has one latency, so there are parallel links, one for
// each packet length (configs/gem5/machine_network.py), and this unit takes the link for the message's length. Compiled
// by gem5 (docs/gem5.md), not by moscope.
//
// Only the first of several parallel links is in the network's routes. The others follow it directly. They carry a
// virtual network that has no messages, because gem5 requires parallel links to differ.
#pragma once

#include <vector>

#include "mem/ruby/network/simple/routing/BaseRoutingUnit.hh"
#include "params/RoutingBySize.hh"

namespace gem5 {
namespace ruby {

class RoutingBySize : public BaseRoutingUnit {
  public:
    PARAMS(RoutingBySize);
    RoutingBySize(const Params &p) : BaseRoutingUnit(p), ways_(p.ways) {}

    void addOutPort(LinkID link_id, const std::vector<MessageBuffer *> &out_buffer, const NetDest &routing_table_entry,
                    const PortDirection &direction, int link_weight) override;
    void route(const Message &msg, int vnet, bool deterministic, std::vector<RouteInfo> &out_links) override;

  private:
    struct Port {
        NetDest reach;
        std::vector<LinkID> links; ///< parallel links by packet length, or a single link
    };

    const std::vector<int> ways_;
    std::vector<Port> ports_;
};

} // namespace ruby
} // namespace gem5
