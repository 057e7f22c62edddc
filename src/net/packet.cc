// SPDX-License-Identifier: BSD-3-Clause
#include "net/packet.hh"

#include <algorithm>

#include "net/checksum.hh"

namespace moscope::net {

namespace {

constexpr std::size_t kIpHeader = 20, kUdpHeader = 8, kArpBytes = 28;

void ethernet(Frame &f, const Mac &to, const Mac &from, EtherType type) {
    std::copy(to.begin(), to.end(), f.begin());
    std::copy(from.begin(), from.end(), f.begin() + 6);
    put16(f, 12, type);
}

} // namespace

std::string text_of(Ip ip) {
    return std::to_string(ip >> 24) + "." + std::to_string(ip >> 16 & 255) + "." + std::to_string(ip >> 8 & 255) + "." +
           std::to_string(ip & 255);
}

std::string text_of(const Endpoint &e) { return text_of(e.ip) + ":" + std::to_string(e.port); }

std::optional<Ipv4> ipv4_of(Bytes frame) {
    if (frame.size() < kEthernetHeader + kIpHeader || get16(frame, 12) != kEtherIpv4)
        return std::nullopt;
    const Bytes ip = frame.subspan(kEthernetHeader);
    const std::size_t header = 4u * (ip[0] & 15), length = get16(ip, 2);
    if (ip[0] >> 4 != 4 || header < kIpHeader || length < header || length > ip.size() ||
        Sum().add(ip.first(header)).checksum() != 0)
        return std::nullopt;
    Ipv4 p;
    p.source = get32(ip, 12);
    p.destination = get32(ip, 16);
    p.protocol = ip[9];
    p.fragment = (get16(ip, 6) & 0x3fff) != 0; // an offset, or more to come
    p.payload_offset = kEthernetHeader + header;
    p.payload = ip.subspan(header, length - header);
    return p;
}

Flow flow_of(Bytes frame) {
    const auto p = ipv4_of(frame);
    if (!p)
        return {};
    Flow f{p->source, p->destination, 0, 0, p->protocol, false};
    if ((p->protocol == kTcp || p->protocol == kUdp) && !p->fragment && p->payload.size() >= 4) {
        f.source_port = get16(p->payload, 0);
        f.destination_port = get16(p->payload, 2);
        f.ports = true;
    }
    return f;
}

std::optional<bool> transport_checksum_right(Bytes frame) {
    const auto p = ipv4_of(frame);
    if (!p || p->fragment || (p->protocol != kTcp && p->protocol != kUdp))
        return std::nullopt;
    Bytes segment = p->payload;
    if (p->protocol == kUdp) {
        if (segment.size() < kUdpHeader || get16(segment, 4) > segment.size() || get16(segment, 4) < kUdpHeader)
            return false;
        if (get16(segment, 6) == 0)
            return std::nullopt; // sent without a checksum
        segment = segment.first(get16(segment, 4));
    }
    return pseudo_header(p->source, p->destination, p->protocol, segment.size()).add(segment).checksum() == 0;
}

std::optional<Udp> udp_of(const Ipv4 &p) {
    if (p.protocol != kUdp || p.fragment || p.payload.size() < kUdpHeader)
        return std::nullopt;
    const std::size_t length = get16(p.payload, 4);
    if (length < kUdpHeader || length > p.payload.size())
        return std::nullopt;
    if (get16(p.payload, 6) != 0 &&
        pseudo_header(p.source, p.destination, kUdp, length).add(p.payload.first(length)).checksum() != 0)
        return std::nullopt;
    return Udp{{p.source, get16(p.payload, 0)},
               {p.destination, get16(p.payload, 2)},
               p.payload.subspan(kUdpHeader, length - kUdpHeader)};
}

Frame ipv4_frame(const Mac &to, Ip source, Ip destination, std::uint8_t protocol, std::size_t payload) {
    Frame f(std::max(kLeastFrame, kIpPayload + payload));
    ethernet(f, to, mac_of(source), kEtherIpv4);
    const std::span<std::uint8_t> ip = std::span(f).subspan(kEthernetHeader, kIpHeader);
    ip[0] = 0x45;
    put16(ip, 2, static_cast<std::uint32_t>(kIpHeader + payload));
    put16(ip, 6, 0x4000); // do not fragment
    ip[8] = 64;
    ip[9] = protocol;
    put32(ip, 12, source);
    put32(ip, 16, destination);
    put16(ip, 10, Sum().add(ip).checksum());
    return f;
}

Frame udp_frame(const Mac &to, const Endpoint &source, const Endpoint &destination, Bytes payload) {
    const std::size_t length = kUdpHeader + payload.size();
    Frame f = ipv4_frame(to, source.ip, destination.ip, kUdp, length);
    const std::span<std::uint8_t> udp = std::span(f).subspan(kIpPayload, length);
    put16(udp, 0, source.port);
    put16(udp, 2, destination.port);
    put16(udp, 4, static_cast<std::uint32_t>(length));
    std::copy(payload.begin(), payload.end(), udp.begin() + kUdpHeader);
    const std::uint16_t sum = pseudo_header(source.ip, destination.ip, kUdp, length).add(udp).checksum();
    put16(udp, 6, sum ? sum : 0xffff); // zero stands for no checksum
    return f;
}

std::optional<Arp> arp_of(Bytes frame) {
    if (frame.size() < kEthernetHeader + kArpBytes || get16(frame, 12) != kEtherArp)
        return std::nullopt;
    const Bytes a = frame.subspan(kEthernetHeader);
    if (get16(a, 0) != 1 || get16(a, 2) != kEtherIpv4 || a[4] != 6 || a[5] != 4 || get16(a, 6) < 1 || get16(a, 6) > 2)
        return std::nullopt;
    Arp arp;
    arp.request = get16(a, 6) == 1;
    std::copy_n(a.begin() + 8, 6, arp.sender_mac.begin());
    arp.sender = get32(a, 14);
    arp.target = get32(a, 24);
    return arp;
}

Frame arp_frame(const Arp &arp, const Mac &to) {
    Frame f(kLeastFrame);
    ethernet(f, to, arp.sender_mac, kEtherArp);
    const std::span<std::uint8_t> a = std::span(f).subspan(kEthernetHeader);
    put16(a, 0, 1);
    put16(a, 2, kEtherIpv4);
    a[4] = 6;
    a[5] = 4;
    put16(a, 6, arp.request ? 1 : 2);
    std::copy(arp.sender_mac.begin(), arp.sender_mac.end(), a.begin() + 8);
    put32(a, 14, arp.sender);
    if (!arp.request)
        std::copy(to.begin(), to.end(), a.begin() + 18);
    put32(a, 24, arp.target);
    return f;
}

std::optional<Frame> echo_reply(const Ipv4 &p, const Mac &to) {
    if (p.protocol != kIcmp || p.fragment || p.payload.size() < 8 || p.payload[0] != 8 || p.payload[1] != 0 ||
        Sum().add(p.payload).checksum() != 0)
        return std::nullopt;
    Frame f = ipv4_frame(to, p.destination, p.source, kIcmp, p.payload.size());
    const std::span<std::uint8_t> icmp = std::span(f).subspan(kIpPayload, p.payload.size());
    std::copy(p.payload.begin(), p.payload.end(), icmp.begin());
    icmp[0] = 0;
    put16(icmp, 2, 0);
    put16(icmp, 2, Sum().add(icmp).checksum());
    return f;
}

} // namespace moscope::net
