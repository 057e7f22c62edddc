// SPDX-License-Identifier: BSD-3-Clause
// HTTP clients without keep-alive (RFC 9112, version 1.0). Each opens a connection, asks for `/file`, reads until the
// server closes, and compares the answer with the expected file: `bytes` letters, `a` to `z` repeated.
//
// A closed loop (`rate` is 0) keeps `connections` open; the first ones are opened slowly. When a connection ends, the
// next one goes to the same server, so that a slow server does not collect all connections. An open loop opens `rate`
// connections a second, whatever becomes of them, but never has more than `connections` open. The first connections of
// a closed loop and all of an open loop go in turn to the `servers` ports from `port` on.
#include <set>
#include <string>
#include <unordered_map>

#include "net/driver.hh"
#include "net/tcp/tcp.hh"

namespace moscope::net {

namespace {

constexpr Tick kSecond = 1'000'000'000 * kTicksPerNs;
constexpr std::uint16_t kFirstPort = 32'768, kPorts = 28'000;
// Linux moves an interrupt to its new core only when the interrupt next comes, so the first packets of all queues are
// served by the few cores that had the interrupts before. If all connections came at once, they would overflow what the
// listener keeps for each of these cores.
constexpr std::uint64_t kSlow = 512;
constexpr Tick kBetweenSlow = kSecond / 100'000, kBetweenFirst = kSecond / 1'000'000;
constexpr std::size_t kMostHeader = 4096;
constexpr std::uint64_t kMostConnections = 1'000'000;
constexpr std::uint64_t kAttempts = 64; ///< of an open loop, to find an endpoint that is not in use

class Http final : public Driver, private TcpUser {
  public:
    explicit Http(Services &s) : services_(s), user_(s.tcp().add_user(*this)) {}

    void start(Ip guest, Settings &settings, Tick now) override {
        Options o;
        o.guest = guest;
        o.servers = settings.number("servers", 1, 1, 1024);
        o.hosts = settings.number("clients", 58, 1, Services::kMostHosts);
        o.port = settings.number("port", 80, 1, 65535 - 1024);
        o.bytes = settings.number("bytes", 300, 0, 1'000'000);
        o.rate = settings.number("rate", 0, 0, 100'000'000);
        // In a closed loop, each connection to a server has an endpoint of its own.
        const std::uint64_t most = o.rate ? kMostConnections : std::min(kMostConnections, o.servers * endpoints(o));
        o.connections = settings.number("connections", 2, 1, most);
        o.patience = static_cast<Tick>(settings.number("patience_ms", 10'000, 1, 1'000'000)) * (kSecond / 1000);
        settings.check();
        stop(now);
        o_ = o;
        counts_ = {};
        running_ = true;
        next_arrival_ = now;
        first_ = 0;
    }
    void stop(Tick now) override {
        running_ = false;
        next_arrival_ = kNever;
        std::vector<ConnectionId> ids;
        for (const auto &[due, id] : due_)
            ids.push_back(id);
        for (const ConnectionId id : ids)
            services_.tcp().abort(id, now);
        requests_.clear();
        due_.clear();
    }
    std::string report() const override {
        const Counts &c = counts_;
        return "answers=" + std::to_string(c.answers) + " wrong=" + std::to_string(c.wrong) +
               " refused=" + std::to_string(c.refused) + " reset=" + std::to_string(c.reset) +
               " stalled=" + std::to_string(c.stalled) + " opened=" + std::to_string(c.opened) +
               " skipped=" + std::to_string(c.skipped) +
               " to_open=" + std::to_string(running_ && o_.rate == 0 ? o_.connections - first_ : 0);
    }
    Tick next() const override { return std::min(next_arrival_, due_.empty() ? kNever : due_.begin()->first); }
    void run(Tick now) override {
        while (!due_.empty() && due_.begin()->first <= now) {
            const ConnectionId id = due_.begin()->second;
            ++counts_.stalled;
            services_.tcp().abort(id, now);
            over(id, now);
        }
        while (next_arrival_ <= now) {
            if (requests_.size() < o_.connections)
                open((o_.rate ? opened_ : first_) % o_.servers, now);
            else
                ++counts_.skipped;
            if (o_.rate != 0)
                next_arrival_ += kSecond / static_cast<Tick>(o_.rate);
            else
                next_arrival_ = ++first_ < o_.connections
                                    ? next_arrival_ + (first_ <= kSlow ? kBetweenSlow : kBetweenFirst)
                                    : kNever;
        }
    }
    void archive(Archive &a) override {
        std::map<ConnectionId, Request> requests(requests_.begin(), requests_.end());
        a(o_, counts_, requests, opened_, first_, running_, next_arrival_);
        if (!a.loading())
            return;
        requests_.clear();
        due_.clear();
        for (auto &[id, r] : requests) {
            due_.insert({r.due, id});
            requests_[id] = std::move(r);
        }
    }

  private:
    struct Options {
        Ip guest = 0;
        std::uint32_t unused = 0; ///< fills the padding, whose bytes would be undefined in checkpoints
        std::uint64_t connections = 0, servers = 1, hosts = 1, port = 0, bytes = 0, rate = 0;
        Tick patience = 0;
    };
    struct Request {
        Tick due = 0;
        std::string header; ///< until it is whole
        bool in_body = false, wrong = false, whole = false;
        std::uint64_t server = 0;
        std::uint64_t got = 0; ///< bytes of the body
        void archive(Archive &a) { a(due, header, in_body, wrong, whole, server, got); }
    };
    struct Counts {
        std::uint64_t opened = 0, answers = 0, wrong = 0, refused = 0, reset = 0, stalled = 0, skipped = 0;
    };

    /// From which clients can open connections to a server.
    static std::uint64_t endpoints(const Options &o) { return o.hosts * kPorts; }
    /// A closed loop must not lose a connection, so it tries all endpoints; an open loop skips one.
    void open(std::uint64_t server, Tick now) {
        const std::uint64_t attempts = o_.rate ? kAttempts : endpoints(o_);
        for (std::uint64_t attempt = 0; attempt < attempts; ++attempt) {
            const std::uint64_t n = opened_++;
            const Endpoint from{Services::host(static_cast<unsigned>(n % o_.hosts)),
                                static_cast<std::uint16_t>(kFirstPort + n / o_.hosts % kPorts)};
            const Endpoint to{o_.guest, static_cast<std::uint16_t>(o_.port + server)};
            if (const ConnectionId id = services_.tcp().connect(user_, from, to, now)) {
                ++counts_.opened;
                Request &r = requests_[id];
                r.due = now + o_.patience;
                r.server = server;
                due_.insert({now + o_.patience, id});
                return;
            }
        }
        ++counts_.skipped;
    }
    void over(ConnectionId id, Tick now) {
        const auto at = requests_.find(id);
        if (at == requests_.end())
            return;
        const std::uint64_t server = at->second.server;
        due_.erase({at->second.due, id});
        requests_.erase(at);
        if (running_ && o_.rate == 0)
            open(server, now);
    }

    void connected(ConnectionId id, Tick now) override {
        static constexpr std::string_view request = "GET /file HTTP/1.0\r\nHost: 10.1.0.1\r\n\r\n";
        services_.tcp().send(id, {reinterpret_cast<const std::uint8_t *>(request.data()), request.size()}, now);
    }
    void received(ConnectionId id, Bytes bytes, Tick) override {
        const auto at = requests_.find(id);
        if (at == requests_.end())
            return;
        Request &r = at->second;
        for (const std::uint8_t b : bytes) {
            if (r.in_body) {
                r.wrong |= r.got >= o_.bytes || b != static_cast<std::uint8_t>('a' + r.got % 26);
                ++r.got;
                continue;
            }
            r.header.push_back(static_cast<char>(b));
            r.wrong |= r.header.size() > kMostHeader;
            if (r.header.ends_with("\r\n\r\n")) {
                r.in_body = true;
                r.wrong |= !(r.header.starts_with("HTTP/1.1 200 ") || r.header.starts_with("HTTP/1.0 200 "));
                r.header.clear();
            }
        }
    }
    void finished(ConnectionId id, Tick now) override {
        const auto at = requests_.find(id);
        if (at != requests_.end())
            at->second.whole = true;
        services_.tcp().finish(id, now);
    }
    void ended(ConnectionId id, TcpEnd why, Tick now) override {
        const auto at = requests_.find(id);
        if (at == requests_.end())
            return;
        const Request &r = at->second;
        if (why == TcpEnd::refused) {
            ++counts_.refused;
        } else if (why == TcpEnd::stalled) {
            ++counts_.stalled;
        } else if (why == TcpEnd::reset && !(r.whole && r.got == o_.bytes)) {
            ++(r.in_body ? counts_.wrong : counts_.reset);
        } else if (r.wrong || !r.in_body || r.got != o_.bytes) {
            ++counts_.wrong;
        } else {
            ++counts_.answers;
            services_.done(1);
        }
        over(id, now);
    }

    Services &services_;
    unsigned user_;
    Options o_;
    Counts counts_;
    std::unordered_map<ConnectionId, Request> requests_; ///< walked only for a checkpoint, by number
    std::set<std::pair<Tick, ConnectionId>> due_;        ///< when patience ends
    std::uint64_t opened_ = 0, first_ = 0;               ///< opened: all, and those that begin a closed loop
    bool running_ = false;
    Tick next_arrival_ = kNever;
};

const RegisteredDriver registered("http",
                                  [](Services &s) -> std::unique_ptr<Driver> { return std::make_unique<Http>(s); });

} // namespace

} // namespace moscope::net
