// SPDX-License-Identifier: BSD-3-Clause
// Reading and writing packets: IP version 4 (RFC 791, no options sent, no fragments taken), UDP (RFC 768), ICMP echo (RFC
// 792), ARP (RFC 826). Frames come from the guest, so every length is checked.
#pragma once

#include <optional>

#include "net/frame.hh"

namespace moscope::net {

/// An IP packet in a frame. `payload` points into the frame.
struct Ipv4 {
    Ip source = 0, destination = 0;
    std::uint8_t protocol = 0;
    bool fragment = false; ///< one of several; ports are in the first only
    std::size_t payload_offset = 0;
    Bytes payload;
};
/// None: no IP packet, or one whose lengths or header checksum are wrong.
std::optional<Ipv4> ipv4_of(Bytes frame);

/// What identifies a connection. Without `ports`, the packets have none.
struct Flow {
    Ip source = 0, destination = 0;
    std::uint16_t source_port = 0, destination_port = 0;
    std::uint8_t protocol = 0; ///< 0: the frame is no IP packet
    bool ports = false;
    bool operator==(const Flow &) const = default;
    Flow reverse() const { return {destination, source, destination_port, source_port, protocol, ports}; }
    void archive(Archive &a) { a(source, destination, source_port, destination_port, protocol, ports); }
};
Flow flow_of(Bytes frame);

/// Whether the checksum of a TCP or UDP packet is right; none: another protocol, a fragment, or sent without one.
std::optional<bool> transport_checksum_right(Bytes frame);

struct Udp {
    Endpoint source, destination;
    Bytes payload;
};
std::optional<Udp> udp_of(const Ipv4 &);

/// A frame with Ethernet and IP header, and room for `payload` bytes, which are zero.
Frame ipv4_frame(const Mac &to, Ip source, Ip destination, std::uint8_t protocol, std::size_t payload);
inline constexpr std::size_t kIpPayload = kEthernetHeader + 20; ///< offset of the payload in it
Frame udp_frame(const Mac &to, const Endpoint &source, const Endpoint &destination, Bytes payload);

struct Arp {
    bool request = false;
    Mac sender_mac{};
    Ip sender = 0, target = 0;
};
std::optional<Arp> arp_of(Bytes frame);
Frame arp_frame(const Arp &, const Mac &to);

/// The answer to an ICMP echo request; none: it is something else.
std::optional<Frame> echo_reply(const Ipv4 &, const Mac &to);

} // namespace moscope::net
