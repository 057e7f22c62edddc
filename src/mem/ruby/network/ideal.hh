// SPDX-License-Identifier: BSD-3-Clause
// A network without a topology, for tests of protocols: every message takes the same latency plus a random delay,
// and no message waits for another. Messages overtake each other freely, except on virtual networks declared
// ordered, which keep the order of each pair of controllers.
#pragma once

#include "mem/ruby/network/network.hh"

namespace moscope::ruby {

class IdealNetwork final : public Network {
  public:
    IdealNetwork(EventQueue &queue, const NetworkParams &params, unsigned nodes);

    Ingress *ingress(NodeIndex) override { return &hub_.ingress; }
    Tick min_delivery_latency(NodeIndex) const override { return latency_; }
    Tick min_path_latency(NodeIndex, NodeIndex) const override { return latency_; }
    NetworkStats stats() const override;
    void reset_stats(Tick) override { stats_ = {}; }
    void for_each_held(const std::function<void(const HeldMessage &)> &f) override;

  private:
    struct Hub : Component {
        Hub(EventQueue &queue, IdealNetwork &net);
        IdealNetwork &network;
        Ingress ingress;
    };
    void wake(Tick now);
    void deliver(Message *m, NodeIndex node, Tick now);

    Tick latency_;
    ChannelStats stats_;
    Hub hub_;
};

} // namespace moscope::ruby
