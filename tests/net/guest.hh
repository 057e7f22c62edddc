// SPDX-License-Identifier: BSD-3-Clause
// Client hosts, a link of 10 us each way, and a guest that consists of a TCP only: for tests of drivers.
#pragma once

#include <map>
#include <string>

#include "net/hosts.hh"
#include "net/tcp/tcp.hh"

namespace moscope::net {

constexpr Ip kGuest = 0x0a010001;
constexpr Tick kMs = 1'000'000 * kTicksPerNs, kWay = kMs / 100;

/// A number of a driver's report; the largest one if the report has no such key.
inline std::uint64_t value(const std::string &report, const std::string &key) {
    const std::size_t at = (" " + report).find(" " + key + "=");
    return at == std::string::npos ? ~0ull : std::stoull(report.substr(at + key.size() + 1));
}

/// The server is the derived class, which listens and answers.
struct GuestTcp : TcpUser {
    std::uint64_t done = 0; ///< operations that the driver has counted
    Tick now = 0;
    std::multimap<Tick, std::pair<bool, Frame>> flying; ///< to the guest?
    Hosts hosts{1,
                [this](Frame f, Tick t) {
                    flying.insert({t + kWay, {true, std::move(f)}});
                },
                [this](std::uint64_t n) { done += n; }};
    Tcp tcp{{}, [this](const Segment &s, Tick t) {
                flying.insert({t + kWay, {false, segment_frame(mac_of(s.destination.ip), s)}});
            }};
    const unsigned user = tcp.add_user(*this);

    GuestTcp() { hosts.receive(arp_frame({true, mac_of(kGuest), kGuest, Hosts::kControl}, {}), 0); }
    void answer(ConnectionId id, std::string_view text, Tick t) {
        tcp.send(id, {reinterpret_cast<const std::uint8_t *>(text.data()), text.size()}, t);
    }
    /// When the server has to act next by itself, and acting.
    virtual Tick next() const { return kNever; }
    virtual void act() {}
    void run(Tick until) {
        while (true) {
            const Tick first = flying.empty() ? kNever : flying.begin()->first;
            const Tick at = std::min({first, hosts.next(), tcp.next(), next()});
            if (at > until)
                break;
            now = at;
            while (!flying.empty() && flying.begin()->first <= now) {
                const auto [to_guest, frame] = std::move(flying.begin()->second);
                flying.erase(flying.begin());
                if (!to_guest)
                    hosts.receive(frame, now);
                else if (const auto packet = ipv4_of(frame); packet && packet->protocol == kTcp)
                    tcp.receive(*packet, now);
            }
            hosts.run(now);
            tcp.run(now);
            act();
        }
        now = until;
    }
    std::string report(const std::string &driver) { return hosts.command("report " + driver, kGuest, now).substr(3); }
};

} // namespace moscope::net
