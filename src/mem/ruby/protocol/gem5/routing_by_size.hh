// SPDX-License-Identifier: BSD-3-Clause
// Routing of gem5's simple network where a link's latency depends on how long the packet is, as it does on a wire
// that is left when the last byte has arrived. gem5's links have one latency each, so there is one beside the other
// for each length (configs/gem5/machine_network.py), and this unit takes that of the message's length. Compiled by
// gem5 (docs/gem5.md), not by moscope.
//
// Only the first of the links beside each other is entered in the network's routes; the others carry a virtual
// network that has no messages, as gem5 wants them to differ, and follow it at once.
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
        std::vector<LinkID> links; ///< by length; one alone if it has no others beside it
    };

    const std::vector<int> ways_;
    std::vector<Port> ports_;
};

} // namespace ruby
} // namespace gem5
