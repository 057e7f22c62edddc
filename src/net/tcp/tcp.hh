// SPDX-License-Identifier: BSD-3-Clause
// TCP (RFC 9293) as far as a load generator needs it: active and passive opening, segmentation, acknowledgements, a fixed
// receive window, retransmission by a fixed time-out that doubles and after three equal acknowledgements, reassembly, FIN,
// RST, TIME-WAIT. It has no congestion control, no window scaling, no selective acknowledgements. It acknowledges each segment
// at once. Acknowledgements of SYN and FIN go by themselves, before what the user sends in answer, as Linux sends them: a server
// receives as many packets for a request as from a real client. It knows neither time nor link: it is given segments and the
// time, and emits segments.
#pragma once

#include <functional>
#include <memory>
#include <set>
#include <unordered_map>

#include "base/types.hh"
#include "net/tcp/connection.hh"
#include "net/tcp/segment.hh"

namespace moscope::net {

using ConnectionId = std::uint64_t; ///< 0: none

/// A user of connections. Its functions may call any function of Tcp.
class TcpUser {
  public:
    virtual ~TcpUser() = default;
    virtual void connected(ConnectionId, Tick) {}
    virtual void received(ConnectionId, Bytes, Tick) {}
    /// The other side sends nothing more.
    virtual void finished(ConnectionId, Tick) {}
    /// The connection has ended; no further call concerns it.
    virtual void ended(ConnectionId, TcpEnd, Tick) {}
};

class Tcp {
  public:
    struct Parameters {
        Tick time_out = 200'000'000 * kTicksPerNs; ///< of the first retransmission; each next one waits twice as long
        Tick longest_time_out = 3'200'000'000 * kTicksPerNs;
        unsigned repeats = 10;                         ///< then the connection is stalled
        Tick time_wait = 60'000'000'000 * kTicksPerNs; ///< as in Linux: longer than either side repeats its FIN
        std::uint16_t window = 65535, largest = 1460;
    };
    struct Counts {
        std::uint64_t opened = 0, accepted = 0, finished = 0, refused = 0, reset = 0, stalled = 0;
        std::uint64_t segments_in = 0, segments_out = 0, repeated = 0, out_of_order = 0, bad = 0;
    };
    using Emit = std::function<void(const Segment &, Tick)>;

    Tcp(const Parameters &p, Emit emit) : p_(p), emit_(std::move(emit)) {}

    /// Users are numbered in the order in which they are added, which is the same in each run.
    unsigned add_user(TcpUser &u) {
        users_.push_back(&u);
        return static_cast<unsigned>(users_.size() - 1);
    }
    /// Accepts connections to a port at any local address, for a user.
    void listen(unsigned user, std::uint16_t port) { listeners_[port] = user; }
    /// Opens a connection; 0: the pair of endpoints is in use.
    ConnectionId connect(unsigned user, const Endpoint &local, const Endpoint &remote, Tick now);
    void send(ConnectionId, Bytes, Tick now);
    /// Sends a FIN after the bytes that were given to send(); later bytes are ignored.
    void finish(ConnectionId, Tick now);
    /// Resets the connection; its user gets no further calls for it.
    void abort(ConnectionId, Tick now);
    Endpoint local(ConnectionId id) const;
    Endpoint remote(ConnectionId id) const;

    void receive(const Ipv4 &, Tick now);
    void receive(const Segment &, Tick now);
    Tick next() const { return deadlines_.empty() ? kNever : deadlines_.begin()->first; }
    void run(Tick now);

    std::size_t connections() const { return connections_.size(); }
    const Counts &counts() const { return counts_; }
    void archive(Archive &);

  private:
    using C = TcpConnection;
    struct Pair {
        Endpoint local, remote;
        bool operator==(const Pair &) const = default;
    };
    struct Hash {
        std::size_t operator()(const Pair &p) const {
            std::uint64_t h = (std::uint64_t{p.local.ip} << 32 | p.remote.ip) * 0x9e3779b97f4a7c15;
            h ^= (h >> 29) + (std::uint64_t{p.local.port} << 16 | p.remote.port);
            return h * 0xbf58476d1ce4e5b9;
        }
    };
    C *find(ConnectionId id) const {
        const auto at = connections_.find(id);
        return at == connections_.end() || at->second->state == C::kGone ? nullptr : at->second.get();
    }
    std::pair<ConnectionId, C *> make(unsigned user, const Endpoint &local, const Endpoint &remote, Tick now);
    void accept(const Segment &, Tick now);
    void process(ConnectionId, C &, const Segment &, Tick now);
    std::uint16_t largest_for(const Segment &syn) const;
    void answer_to_syn(ConnectionId, C &, const Segment &, Tick now);
    void answers_probe(ConnectionId, C &, bool opens, Tick now);
    bool acknowledged(ConnectionId, C &, const Segment &, Tick now);
    void take(ConnectionId, C &, const Segment &, Tick now);
    void deliver(ConnectionId, C &, Bytes, Tick now);
    void finished_by_other(ConnectionId, C &, Tick now);
    /// Sends what may be sent, and an acknowledgement if one is owed.
    void output(ConnectionId, C &, Tick now);
    void repeat_first(C &, Tick now);
    void emit(C &, std::uint32_t sequence, std::uint8_t flags, Bytes payload, Tick now);
    void refuse(const Segment &, Tick now);
    void end(ConnectionId, C &, TcpEnd, Tick now, bool tell = true);
    void set_deadline(ConnectionId, C &, Tick);
    Tick time_out(const C &c) const;
    void clean();

    Parameters p_;
    Emit emit_;
    std::vector<TcpUser *> users_;
    std::map<std::uint16_t, unsigned> listeners_;
    std::unordered_map<ConnectionId, std::unique_ptr<C>> connections_; ///< walked only for a checkpoint, by number
    std::unordered_map<Pair, ConnectionId, Hash> by_pair_;
    std::set<std::pair<Tick, ConnectionId>> deadlines_;
    std::vector<ConnectionId> gone_;
    ConnectionId last_ = 0;
    Counts counts_;
};

} // namespace moscope::net
