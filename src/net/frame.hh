// SPDX-License-Identifier: BSD-3-Clause
// Ethernet frames as bytes, without preamble and frame check sequence, and the addresses in them. Numbers in packets are
// big-endian; addresses of IP version 4 are integers in the order in which people write them (10.1.0.1 is 0x0a010001).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "sim/archive.hh"

namespace moscope::net {

using Frame = std::vector<std::uint8_t>;
using Bytes = std::span<const std::uint8_t>;
using Ip = std::uint32_t;
using Mac = std::array<std::uint8_t, 6>;

inline constexpr std::size_t kEthernetHeader = 14, kLeastFrame = 60, kMtu = 1500;
/// Bytes that a frame takes on the wire beyond those of a Frame: preamble, frame check sequence, gap (IEEE 802.3).
inline constexpr std::size_t kWireOverhead = 24;
enum EtherType : std::uint16_t { kEtherIpv4 = 0x0800, kEtherArp = 0x0806 };
enum Protocol : std::uint8_t { kIcmp = 1, kTcp = 6, kUdp = 17 };

inline std::uint16_t get16(Bytes b, std::size_t at) { return static_cast<std::uint16_t>(b[at] << 8 | b[at + 1]); }
inline std::uint32_t get32(Bytes b, std::size_t at) {
    return static_cast<std::uint32_t>(get16(b, at)) << 16 | get16(b, at + 2);
}
inline void put16(std::span<std::uint8_t> b, std::size_t at, std::uint32_t v) {
    b[at] = static_cast<std::uint8_t>(v >> 8);
    b[at + 1] = static_cast<std::uint8_t>(v);
}
inline void put32(std::span<std::uint8_t> b, std::size_t at, std::uint32_t v) {
    put16(b, at, v >> 16);
    put16(b, at + 2, v);
}

/// The locally administered MAC address of the host with this IP address: each host has one of each.
inline Mac mac_of(Ip ip) {
    return {0x02,
            0x00,
            static_cast<std::uint8_t>(ip >> 24),
            static_cast<std::uint8_t>(ip >> 16),
            static_cast<std::uint8_t>(ip >> 8),
            static_cast<std::uint8_t>(ip)};
}
std::string text_of(Ip);

/// An address and a port.
struct Endpoint {
    Ip ip = 0;
    std::uint16_t port = 0;
    auto operator<=>(const Endpoint &) const = default;
    void archive(Archive &a) { a(ip, port); }
};
std::string text_of(const Endpoint &);

} // namespace moscope::net
