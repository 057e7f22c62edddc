// SPDX-License-Identifier: BSD-3-Clause
// How a network card chooses the receive queue of a frame. Each policy registers itself in its own source file:
//
//   const RegisteredSteering registered("first", [](unsigned) -> std::unique_ptr<Steering> {
//       return std::make_unique<First>();
//   });
//
// The MOSBENCH paper's driver for the Intel 82599 had three: `pin-every-20`, `fixed-port` and a spread (`rss`).
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "net/packet.hh"
#include "sim/archive.hh"

namespace moscope::dev {

/// What the driver configured for receive side scaling (virtio 1.2, section 5.1.6.5.6.1); without it, the defaults.
struct RssConfig {
    enum Types : std::uint32_t { kIpv4 = 1, kTcpv4 = 2, kUdpv4 = 4 };
    static constexpr unsigned kEntries = 128, kKeyBytes = 40;

    std::uint32_t types = kIpv4 | kTcpv4 | kUdpv4;
    std::uint16_t unclassified = 0;   ///< queue for frames of none of `types`
    std::vector<std::uint16_t> table; ///< by the hash's low bits; its size is a power of two; empty: queues in turn
    std::vector<std::uint8_t> key;    ///< empty: the default one

    unsigned queue_of(const net::Flow &flow, unsigned queues) const;
    void archive(Archive &a) { a(types, unclassified, table, key); }
};

class Steering {
  public:
    virtual ~Steering() = default;
    /// The queue, below `queues`, for a frame of this flow.
    virtual unsigned queue_of(const net::Flow &flow, unsigned queues, const RssConfig &rss) = 0;
    /// The guest sent a frame of this flow from this queue.
    virtual void sent(const net::Flow & /*flow*/, unsigned /*queue*/) {}
    virtual void archive(Archive &) {}
};

class RegisteredSteering {
  public:
    /// `first_port`: a parameter of the card (src/schema/nic.py).
    using Make = std::unique_ptr<Steering> (*)(unsigned first_port);
    /// `name` is a literal.
    RegisteredSteering(std::string_view name, Make make);
};
/// UserError, with the names that there are, if `name` is not one of them.
std::unique_ptr<Steering> make_steering(std::string_view name, unsigned first_port);
/// Names of all policies, sorted.
std::vector<std::string> steering_policies();

} // namespace moscope::dev
