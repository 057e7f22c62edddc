// SPDX-License-Identifier: BSD-3-Clause
// `rss`: receive side scaling, as the driver configured it. It spreads connections over the queues.
#include "dev/nic/steering.hh"

namespace moscope::dev {

namespace {

class Rss final : public Steering {
    unsigned queue_of(const net::Flow &flow, unsigned queues, const RssConfig &rss) override {
        return rss.queue_of(flow, queues);
    }
};

const RegisteredSteering registered("rss",
                                    [](unsigned) -> std::unique_ptr<Steering> { return std::make_unique<Rss>(); });

} // namespace

} // namespace moscope::dev
