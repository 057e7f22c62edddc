// SPDX-License-Identifier: BSD-3-Clause
// memcached clients like those of the MOSBENCH paper. Over UDP, each sends a batch of `get`s for a key that does not
// exist, waits for all answers, at most 100 ms (`time_out_ms`), and sends the next batch. Client i asks server port
// `port` + i mod `servers`. An answer has the number of a request that waits for it; it is right if it comes from that
// port and says that the key is missing (memcached, doc/protocol.txt, "UDP protocol"). A request counts once: its
// answer is right or wrong, or it times out.
#include <algorithm>
#include <bit>
#include <set>
#include <string_view>

#include "net/driver.hh"

namespace moscope::net {

namespace {

constexpr std::size_t kHeader = 8; ///< number, place in the answer, datagrams of the answer, reserved
constexpr std::string_view kRequest = "get 0123456789\r\n", kMissing = "END\r\n";
constexpr std::uint16_t kPort = 21'000;
constexpr unsigned kMostBatch = 32; ///< bits of `waiting`
constexpr Tick kMs = 1'000'000 * kTicksPerNs;

class Memcached final : public Driver {
  public:
    explicit Memcached(Services &s) : services_(s) {}

    void start(Ip guest, Settings &settings, Tick now) override {
        Options o;
        o.guest = guest;
        o.clients = settings.number("clients", 792, 1, Services::kMostHosts);
        o.servers = settings.number("servers", 1, 1, 1024);
        o.batch = settings.number("batch", 20, 1, kMostBatch);
        o.port = settings.number("port", 11211, 1, 65535 - 1024);
        o.time_out = static_cast<Tick>(settings.number("time_out_ms", 100, 1, 100'000)) * kMs;
        settings.check();
        o_ = o;
        counts_ = {};
        due_.clear();
        clients_.assign(o.clients, {});
        running_ = true;
        for (unsigned i = 0; i < clients_.size(); ++i)
            send_batch(i, now);
    }
    void stop(Tick) override {
        running_ = false;
        due_.clear();
    }
    std::string report() const override {
        return "answers=" + std::to_string(counts_.answers) + " wrong=" + std::to_string(counts_.wrong) +
               " late=" + std::to_string(counts_.late) + " timeouts=" + std::to_string(counts_.timeouts) +
               " requests=" + std::to_string(counts_.requests);
    }
    std::uint16_t first_port() const override { return kPort; }
    std::uint16_t ports() const override { return 1; }

    void datagram(const Udp &udp, Tick now) override {
        const unsigned i = Services::host_number(udp.destination.ip);
        if (i >= clients_.size())
            return;
        Client &c = clients_[i];
        const unsigned place =
            udp.payload.size() < 2 ? kMostBatch : static_cast<std::uint16_t>(get16(udp.payload, 0) - c.first);
        if (place >= o_.batch || !(c.waiting >> place & 1)) {
            ++counts_.late; // its batch timed out, it was answered before, or there is no such request
            return;
        }
        c.waiting &= ~(1u << place);
        if (udp.source == server(i) && says_missing(udp.payload)) {
            ++counts_.answers;
            services_.done(1);
        } else {
            ++counts_.wrong;
        }
        if (c.waiting == 0 && running_)
            send_batch(i, now);
    }
    Tick next() const override { return due_.empty() ? kNever : due_.begin()->first; }
    void run(Tick now) override {
        while (next() <= now) {
            const unsigned i = due_.begin()->second;
            counts_.timeouts += static_cast<unsigned>(std::popcount(clients_[i].waiting));
            send_batch(i, now);
        }
    }
    void archive(Archive &a) override {
        a(o_, counts_, clients_, running_);
        if (!a.loading())
            return;
        due_.clear();
        for (unsigned i = 0; running_ && i < clients_.size(); ++i)
            due_.insert({clients_[i].due, i});
    }

  private:
    // `unused` fills the padding, whose bytes would be undefined in checkpoints.
    struct Options {
        Ip guest = 0;
        std::uint32_t unused = 0;
        std::uint64_t clients = 0, servers = 1, batch = 1, port = 0;
        Tick time_out = 0;
    };
    struct Client {
        std::uint16_t first = 0; ///< number of the batch's first request
        std::uint16_t unused = 0;
        std::uint32_t waiting = 0; ///< by place in the batch
        Tick due = 0;
    };
    struct Counts {
        std::uint64_t requests = 0, answers = 0, wrong = 0, late = 0, timeouts = 0;
    };
    static bool says_missing(Bytes answer) {
        if (answer.size() <= kHeader || get16(answer, 2) != 0 || get16(answer, 4) != 1)
            return false;
        const Bytes text = answer.subspan(kHeader);
        return std::equal(text.begin(), text.end(), kMissing.begin(), kMissing.end());
    }
    Endpoint server(unsigned i) const { return {o_.guest, static_cast<std::uint16_t>(o_.port + i % o_.servers)}; }

    void send_batch(unsigned i, Tick now) {
        Client &c = clients_[i];
        due_.erase({c.due, i});
        c.due = now + o_.time_out;
        due_.insert({c.due, i});
        c.first = static_cast<std::uint16_t>(c.first + o_.batch);
        c.waiting = static_cast<std::uint32_t>((std::uint64_t{1} << o_.batch) - 1);
        std::vector<std::uint8_t> datagram(kHeader + kRequest.size());
        put16(datagram, 4, 1);
        std::copy(kRequest.begin(), kRequest.end(), datagram.begin() + kHeader);
        for (unsigned n = 0; n < o_.batch; ++n) {
            put16(datagram, 0, c.first + n);
            ++counts_.requests;
            services_.send({Services::host(i), kPort}, server(i), datagram, now);
        }
    }

    Services &services_;
    Options o_;
    Counts counts_;
    std::vector<Client> clients_;
    std::set<std::pair<Tick, unsigned>> due_; ///< time-outs
    bool running_ = false;
};

const RegisteredDriver registered("memcached", [](Services &s) -> std::unique_ptr<Driver> {
    return std::make_unique<Memcached>(s);
});

} // namespace

} // namespace moscope::net
