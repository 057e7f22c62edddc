// SPDX-License-Identifier: BSD-3-Clause
// The HyperTransport network of a machine: a router per chip and the links between them. On an idle network a
// message over h links takes (h + 1) crossbar latencies and h times (serialization + link latency): exactly
// linear in h. Packets are stored and forwarded at each hop, where the real part cuts through.
#pragma once

#include <memory>
#include <vector>

#include "mem/ruby/network/network.hh"
#include "mem/ruby/network/router.hh"
#include "mem/ruby/network/routing.hh"

namespace moscope::ruby {

class HyperTransport final : public Network {
  public:
    /// A queue for each router, or one for all.
    HyperTransport(const std::vector<EventQueue *> &queues, const NetworkParams &params,
                   const std::vector<ControllerName> &controllers);

    Ingress *ingress(NodeIndex node) override { return &routers_[router_of_[node]]->ingress; }
    void open_direct_ways(const std::vector<AbstractController *> &controllers) override;
    void set_trace(TraceHook *hook) override;
    Tick min_delivery_latency(NodeIndex) const override { return common_.latency; }
    Tick min_path_latency(NodeIndex from, NodeIndex to) const override;
    NetworkStats stats() const override;
    void reset_stats(Tick now) override;
    void for_each_held(const std::function<void(const HeldMessage &)> &f) override;

    const std::uint32_t *routed_vnets(NodeIndex node) const override {
        return &routers_[router_of_[node]]->routed_vnets;
    }

  private:
    void build_links(const NetworkParams &params);
    void connect(const NetworkParams &params, const std::vector<ControllerName> &controllers);
    Tick slack(const std::vector<AbstractController *> &controllers) const;
    void catch_up() const;

    RoutingTables tables_;
    RouterCommon common_;
    std::vector<std::unique_ptr<Router>> routers_;
    std::vector<std::unique_ptr<Link>> links_; ///< as in tables_.links()
    std::vector<unsigned> router_of_;          ///< by controller
    Tick slack_ = 0;                           ///< Router::set_slack, without a trace
    std::unique_ptr<Rounds> rounds_;           ///< where there is slack, if it has room for all routers
};

} // namespace moscope::ruby
