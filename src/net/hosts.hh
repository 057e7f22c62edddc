// SPDX-License-Identifier: BSD-3-Clause
// The hosts at the other end of the guest's link. They act in simulated time and have no cores: 10.1.0.2, the control
// host, and the clients 10.1.1.1 to 10.1.250.250. The guest is 10.1.0.1, or any other address of 10.1.0.0/24. Every
// host answers ARP, ICMP echo, echo (RFC 862, port 7, UDP and TCP) and discard (RFC 863, port 9, TCP); drivers
// (net/driver.hh) load the guest. Commands to the control host are datagrams to port 7000 with one line of text; the
// answer goes back to the sender.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "net/driver.hh"
#include "net/packet.hh"
#include "net/servers.hh"

namespace moscope::net {

class Hosts final : public Services {
  public:
    static constexpr Ip kControl = 0x0a010002;
    static constexpr std::uint16_t kEchoPort = 7, kControlPort = 7000;
    using Transmit = std::function<void(Frame, Tick now)>;

    struct Counts {
        std::uint64_t received = 0, unknown = 0, bad = 0, unresolved = 0;
    };

    Hosts(std::uint64_t seed, Transmit transmit, std::function<void(std::uint64_t)> on_operations);
    ~Hosts() override;

    /// A frame from the guest.
    void receive(Bytes frame, Tick now);
    Tick next() const;
    void run(Tick now);

    void send(const Endpoint &from, const Endpoint &to, Bytes payload, Tick now) override;
    void done(std::uint64_t operations) override { on_operations_(operations); }
    Tcp &tcp() override { return tcp_; }
    Rng &rng() override { return rng_; }

    /// Executes a command; the answer is one line.
    std::string command(std::string_view line, Ip guest, Tick now);
    const Counts &counts() const { return counts_; }
    const Tcp &tcp() const { return tcp_; }
    /// The reports of the drivers that were started, by name.
    std::map<std::string, std::string> reports() const;
    static bool is_host(Ip ip) { return ip == kControl || host_number(ip) != ~0u; }
    void archive(Archive &);

  private:
    struct Entry {
        std::unique_ptr<Driver> driver;
        bool started = false;
    };
    void resolve(const Arp &, Tick now);
    void take(const Udp &, Tick now);
    /// The guest's MAC address; null: unknown, and an ARP request has been sent.
    const Mac *mac_for(Ip guest, Ip asker, Tick now);

    Rng rng_;
    Transmit transmit_;
    std::function<void(std::uint64_t)> on_operations_;
    std::map<Ip, Mac> neighbours_; ///< of the guest
    Tcp tcp_;
    EchoServer echo_{tcp_};
    DiscardServer discard_{tcp_};
    std::map<std::string, Entry> drivers_;
    /// Source port and text of the last `start` that no `stop` followed. If the answer is lost, the guest sends the
    /// command again, which must not start the driver twice.
    std::string last_start_;
    Counts counts_;
};

} // namespace moscope::net
