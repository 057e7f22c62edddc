// SPDX-License-Identifier: BSD-3-Clause
#include "dev/nic/toeplitz.hh"

#include <array>

namespace moscope::dev {

std::uint32_t toeplitz(std::span<const std::uint8_t> key, std::span<const std::uint8_t> input) {
    const auto key_byte = [&](std::size_t i) { return i < key.size() ? key[i] : std::uint8_t{0}; };
    std::uint32_t window = 0, hash = 0;
    for (std::size_t i = 0; i < 4; ++i)
        window = window << 8 | key_byte(i);
    for (std::size_t i = 0; i < input.size(); ++i)
        for (int bit = 7; bit >= 0; --bit) {
            if (input[i] >> bit & 1)
                hash ^= window;
            window = window << 1 | (key_byte(i + 4) >> bit & 1);
        }
    return hash;
}

std::vector<std::uint8_t> toeplitz_input(const net::Flow &flow, bool ports) {
    if (flow.protocol == 0)
        return {};
    std::vector<std::uint8_t> input(ports && flow.ports ? 12 : 8);
    net::put32(input, 0, flow.source);
    net::put32(input, 4, flow.destination);
    if (input.size() == 12) {
        net::put16(input, 8, flow.source_port);
        net::put16(input, 10, flow.destination_port);
    }
    return input;
}

std::span<const std::uint8_t> default_rss_key() {
    static constexpr std::array<std::uint8_t, 40> key = {0x6d, 0x5a, 0x56, 0xda, 0x25, 0x5b, 0x0e, 0xc2, 0x41, 0x67,
                                                         0x25, 0x3d, 0x43, 0xa3, 0x8f, 0xb0, 0xd0, 0xca, 0x2b, 0xcb,
                                                         0xae, 0x7b, 0x30, 0xb4, 0x77, 0xcb, 0x2d, 0xa3, 0x80, 0x30,
                                                         0xf2, 0x0c, 0x6a, 0x42, 0xb7, 0x3b, 0xbe, 0xac, 0x01, 0xfa};
    return key;
}

} // namespace moscope::dev
