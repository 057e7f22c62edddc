// SPDX-License-Identifier: BSD-3-Clause
// `pin-every-20`: a table of flows in the card. Every 20th TCP packet that the guest sends from a queue enters its flow
// in the table, so that frames of the other direction arrive at the same queue; frames of other flows are spread. The
// paper used it for PostgreSQL. Like the 82599's table (Intel 82599 data sheet, section 7.1.2.7, "Flow Director"), this
// one is indexed by a hash: a new entry replaces the one in its place.
#include "dev/nic/steering.hh"
#include "dev/nic/toeplitz.hh"

namespace moscope::dev {

namespace {

constexpr unsigned kEntries = 8192; // x: of 8 K to 32 K filters that the 82599 can have, by its memory
constexpr unsigned kEvery = 20;

class PinEvery20 final : public Steering {
  public:
    unsigned queue_of(const net::Flow &flow, unsigned queues, const RssConfig &rss) override {
        const Entry &e = table_[place(flow)];
        return e.used && e.flow == flow ? e.queue % queues : rss.queue_of(flow, queues);
    }
    void sent(const net::Flow &flow, unsigned queue) override {
        if (flow.protocol != net::kTcp || !flow.ports)
            return;
        if (sent_.size() <= queue)
            sent_.resize(queue + 1);
        if (++sent_[queue] % kEvery == 0)
            table_[place(flow.reverse())] = {flow.reverse(), static_cast<std::uint16_t>(queue), true};
    }
    void archive(Archive &a) override {
        a(table_, sent_);
        if (a.loading())
            table_.resize(kEntries);
    }

  private:
    struct Entry {
        net::Flow flow;
        std::uint16_t queue = 0;
        bool used = false;
        void archive(Archive &a) { a(flow, queue, used); }
    };
    static unsigned place(const net::Flow &flow) {
        return toeplitz(default_rss_key(), toeplitz_input(flow, true)) % kEntries;
    }
    std::vector<Entry> table_ = std::vector<Entry>(kEntries);
    std::vector<std::uint32_t> sent_; ///< TCP packets, by queue
};

const RegisteredSteering registered("pin-every-20", [](unsigned) -> std::unique_ptr<Steering> {
    return std::make_unique<PinEvery20>();
});

} // namespace

} // namespace moscope::dev
