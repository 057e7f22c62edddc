// SPDX-License-Identifier: BSD-3-Clause
// `fixed-port`: a frame's destination port alone decides. The first port of the card's parameters belongs to queue 0, the
// next to queue 1, and so on. The paper used it for memcached, which has one port per core. Frames without ports are
// spread.
#include "dev/nic/steering.hh"

namespace moscope::dev {

namespace {

class FixedPort final : public Steering {
  public:
    explicit FixedPort(unsigned first) : first_(first) {}
    unsigned queue_of(const net::Flow &flow, unsigned queues, const RssConfig &rss) override {
        return flow.ports ? (flow.destination_port + 0x10000u - first_) % 0x10000 % queues : rss.queue_of(flow, queues);
    }

  private:
    unsigned first_;
};

const RegisteredSteering registered("fixed-port", [](unsigned first_port) -> std::unique_ptr<Steering> {
    return std::make_unique<FixedPort>(first_port);
});

} // namespace

} // namespace moscope::dev
