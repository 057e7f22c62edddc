// SPDX-License-Identifier: BSD-3-Clause
// The Toeplitz hash of receive side scaling (Microsoft, "RSS hashing functions"; virtio 1.2, section 5.1.6.4.3): for each set
// bit of the input, from its most significant one on, the 32 bits of the key that begin there are XORed.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "net/packet.hh"

namespace moscope::dev {

std::uint32_t toeplitz(std::span<const std::uint8_t> key, std::span<const std::uint8_t> input);

/// The input for a flow: addresses, and ports if there are any and `ports` is set; empty if the flow has no IP packet.
std::vector<std::uint8_t> toeplitz_input(const net::Flow &flow, bool ports);

/// The key of the specification's examples, with which a card begins.
std::span<const std::uint8_t> default_rss_key();

} // namespace moscope::dev
