// SPDX-License-Identifier: BSD-3-Clause
#include "net/tcp/segment.hh"

#include <algorithm>

#include "net/checksum.hh"

namespace moscope::net {

namespace {

constexpr std::size_t kHeader = 20, kLargestOption = 4;
enum : std::uint8_t { kEnd = 0, kNothing = 1, kLargest = 2 };

std::uint16_t largest_in(Bytes options) {
    for (std::size_t i = 0; i < options.size() && options[i] != kEnd;) {
        if (options[i] == kNothing) {
            ++i;
            continue;
        }
        if (i + 1 >= options.size() || options[i + 1] < 2 || i + options[i + 1] > options.size())
            break;
        if (options[i] == kLargest && options[i + 1] == kLargestOption)
            return get16(options, i + 2);
        i += options[i + 1];
    }
    return 0;
}

} // namespace

std::optional<Segment> segment_of(const Ipv4 &p) {
    if (p.protocol != kTcp || p.fragment || p.payload.size() < kHeader)
        return std::nullopt;
    const std::size_t header = 4u * (p.payload[12] >> 4);
    if (header < kHeader || header > p.payload.size() ||
        pseudo_header(p.source, p.destination, kTcp, p.payload.size()).add(p.payload).checksum() != 0)
        return std::nullopt;
    Segment s;
    s.source = {p.source, get16(p.payload, 0)};
    s.destination = {p.destination, get16(p.payload, 2)};
    s.sequence = get32(p.payload, 4);
    s.acknowledgement = get32(p.payload, 8);
    s.flags = p.payload[13] & 0x1f;
    s.window = get16(p.payload, 14);
    s.largest = largest_in(p.payload.subspan(kHeader, header - kHeader));
    s.payload = p.payload.subspan(header);
    return s;
}

Frame segment_frame(const Mac &to, const Segment &s) {
    const std::size_t header = kHeader + (s.largest ? kLargestOption : 0), length = header + s.payload.size();
    Frame f = ipv4_frame(to, s.source.ip, s.destination.ip, kTcp, length);
    const std::span<std::uint8_t> tcp = std::span(f).subspan(kIpPayload, length);
    put16(tcp, 0, s.source.port);
    put16(tcp, 2, s.destination.port);
    put32(tcp, 4, s.sequence);
    put32(tcp, 8, s.acknowledgement);
    tcp[12] = static_cast<std::uint8_t>(header / 4 << 4);
    tcp[13] = s.flags;
    put16(tcp, 14, s.window);
    if (s.largest) {
        tcp[kHeader] = kLargest;
        tcp[kHeader + 1] = kLargestOption;
        put16(tcp, kHeader + 2, s.largest);
    }
    std::copy(s.payload.begin(), s.payload.end(), tcp.begin() + static_cast<std::ptrdiff_t>(header));
    put16(tcp, 16, pseudo_header(s.source.ip, s.destination.ip, kTcp, length).add(tcp).checksum());
    return f;
}

} // namespace moscope::net
