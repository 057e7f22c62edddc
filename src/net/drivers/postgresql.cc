// SPDX-License-Identifier: BSD-3-Clause
// PostgreSQL clients like those of the MOSBENCH paper (section 5.5): `connections` long-lived connections, each from a
// host of its own, which send batches of statements (net/postgresql/session.hh). The first one has the server read the
// table; the others follow after that, because backends that read the same blocks at the same time wait for each other
// at each block. A connection that is refused, or that finds the server still starting, is tried again. One that ends
// otherwise, or does not answer all that was sent within `patience_ms`, counts as wrong, and another takes its place.
#include <algorithm>
#include <set>
#include <unordered_map>

#include "net/driver.hh"
#include "net/postgresql/session.hh"
#include "net/tcp/tcp.hh"

namespace moscope::net {

namespace {

using postgresql::Session;

constexpr Tick kMs = 1'000'000 * kTicksPerNs;
constexpr Tick kAgain = 10 * kMs;
constexpr std::uint16_t kFirstPort = 32'768, kPorts = 28'000;

class Postgresql final : public Driver, private TcpUser {
  public:
    explicit Postgresql(Services &s) : services_(s), user_(s.tcp().add_user(*this)) {}

    void start(Ip guest, Settings &settings, Tick now) override {
        Options o;
        o.guest = guest;
        o.connections = settings.number("connections", 1, 1, Services::kMostHosts);
        o.port = settings.number("port", 5432, 1, 65535);
        o.load.rows = settings.number("rows", 1'000'000, 1, 2'000'000'000);
        o.load.batch = settings.number("batch", 256, 1, 1000);
        o.load.message = settings.number("message", 16, 1, 1000);
        o.load.updates = settings.number("updates", 0, 0, 100);
        o.patience = static_cast<Tick>(settings.number("patience_ms", 10'000, 1, 1'000'000)) * kMs;
        settings.check();
        for (unsigned i = 0; i < clients_.size(); ++i)
            services_.tcp().abort(clients_[i].id, now);
        o_ = o;
        counts_ = {};
        clients_.assign(o.connections, {});
        by_id_.clear();
        due_.clear();
        running_ = true;
        waiting_ = true;
        open(0, now);
    }
    /// Batches that are on their way are still answered.
    void stop(Tick) override { running_ = false; }
    std::string report() const override {
        const Counts &c = counts_;
        std::string s = "answers=" + std::to_string(c.of.answers) + " wrong=" + std::to_string(c.of.wrong) +
                        " updates=" + std::to_string(c.of.updates) + " batches=" + std::to_string(c.of.batches) +
                        " errors=" + std::to_string(c.of.errors) + " lost=" + std::to_string(c.lost) +
                        " stalled=" + std::to_string(c.stalled) + " retried=" + std::to_string(c.retried) +
                        " to_open=" + std::to_string(to_open());
        return c.of.first_error.empty() ? s : s + " first_error=" + c.of.first_error;
    }
    Tick next() const override { return due_.empty() ? kNever : due_.begin()->first; }
    void run(Tick now) override {
        while (next() <= now) {
            const unsigned i = due_.begin()->second;
            if (clients_[i].id) {
                ++counts_.stalled;
                ++counts_.of.wrong;
                services_.tcp().abort(clients_[i].id, now);
                by_id_.erase(clients_[i].id);
            }
            open(i, now);
        }
    }
    void archive(Archive &a) override {
        a(o_.guest, o_.connections, o_.port, o_.load.rows, o_.load.batch, o_.load.message, o_.load.updates,
          o_.patience);
        a(counts_.of.answers, counts_.of.updates, counts_.of.batches, counts_.of.wrong, counts_.of.errors,
          counts_.of.first_error, counts_.lost, counts_.stalled, counts_.retried, clients_, running_, waiting_);
        if (!a.loading())
            return;
        by_id_.clear();
        due_.clear();
        for (unsigned i = 0; i < clients_.size(); ++i) {
            if (clients_[i].id)
                by_id_[clients_[i].id] = i;
            if (clients_[i].due != kNever)
                due_.insert({clients_[i].due, i});
        }
    }

  private:
    struct Options {
        Ip guest = 0;
        std::uint64_t connections = 0, port = 0;
        postgresql::Load load;
        Tick patience = 0;
    };
    struct Client {
        ConnectionId id = 0; ///< 0: none
        Tick due = kNever;   ///< when patience ends, or a connection is tried again
        std::uint64_t opened = 0;
        Session session;
        void archive(Archive &a) { a(id, due, opened, session); }
    };
    struct Counts {
        postgresql::Counts of;
        std::uint64_t lost = 0, stalled = 0, retried = 0;
    };

    /// Connections that send no batches yet.
    std::size_t to_open() const {
        return running_ ? static_cast<std::size_t>(
                              std::count_if(clients_.begin(), clients_.end(),
                                            [](const Client &c) { return c.session.state() != Session::kRunning; }))
                        : 0;
    }
    void wake(unsigned i, Tick due) {
        Client &c = clients_[i];
        due_.erase({c.due, i});
        c.due = due;
        if (due != kNever)
            due_.insert({due, i});
    }
    void open(unsigned i, Tick now) {
        Client &c = clients_[i];
        c.id = 0;
        if (!running_) {
            wake(i, kNever);
            return;
        }
        const Endpoint from{Services::host(i), static_cast<std::uint16_t>(kFirstPort + c.opened++ % kPorts)};
        c.session = Session(o_.load, i + 1, i == 0);
        c.id = services_.tcp().connect(user_, from, {o_.guest, static_cast<std::uint16_t>(o_.port)}, now);
        if (c.id)
            by_id_[c.id] = i;
        wake(i, now + (c.id ? o_.patience : kAgain));
    }
    void send(unsigned i, const std::string &text, Tick now) {
        wake(i, now + o_.patience);
        services_.tcp().send(clients_[i].id, {reinterpret_cast<const std::uint8_t *>(text.data()), text.size()}, now);
    }

    void connected(ConnectionId id, Tick now) override {
        if (const auto at = by_id_.find(id); at != by_id_.end())
            send(at->second, Session::begin(), now);
    }
    void received(ConnectionId id, Bytes bytes, Tick now) override {
        const auto at = by_id_.find(id);
        if (at == by_id_.end())
            return;
        const unsigned i = at->second;
        Session &session = clients_[i].session;
        const std::uint64_t before = counts_.of.answers;
        const std::string text = session.take(bytes, !running_, counts_.of);
        if (counts_.of.answers != before)
            services_.done(counts_.of.answers - before);
        if (!text.empty())
            send(i, text, now);
        if (waiting_ && session.state() == Session::kRunning) {
            waiting_ = false;
            for (unsigned other = 1; other < clients_.size(); ++other)
                open(other, now);
        }
        if (session.state() == Session::kTerminated) {
            services_.tcp().finish(id, now);
        } else if (session.state() == Session::kBroken) {
            services_.tcp().abort(id, now);
            over(i, now);
        }
    }
    void finished(ConnectionId id, Tick now) override { services_.tcp().finish(id, now); }
    void ended(ConnectionId id, TcpEnd why, Tick now) override {
        const auto at = by_id_.find(id);
        if (at == by_id_.end())
            return;
        const unsigned i = at->second;
        if (clients_[i].session.state() == Session::kTerminated) {
            by_id_.erase(at);
            clients_[i].id = 0;
            wake(i, kNever);
        } else if (why == TcpEnd::refused || clients_[i].session.state() == Session::kNotYet) {
            by_id_.erase(at);
            clients_[i].id = 0;
            ++counts_.retried;
            wake(i, now + kAgain);
        } else {
            counts_.stalled += why == TcpEnd::stalled;
            over(i, now);
        }
    }
    /// The connection is lost.
    void over(unsigned i, Tick now) {
        by_id_.erase(clients_[i].id);
        clients_[i].id = 0;
        ++counts_.lost;
        ++counts_.of.wrong;
        wake(i, now + kAgain);
    }

    Services &services_;
    unsigned user_;
    Options o_;
    Counts counts_;
    std::vector<Client> clients_;
    std::unordered_map<ConnectionId, unsigned> by_id_; ///< never walked
    std::set<std::pair<Tick, unsigned>> due_;
    bool running_ = false;
    bool waiting_ = false; ///< all connections but the first wait until the server has read the table
};

const RegisteredDriver registered("postgresql", [](Services &s) -> std::unique_ptr<Driver> {
    return std::make_unique<Postgresql>(s);
});

} // namespace

} // namespace moscope::net
