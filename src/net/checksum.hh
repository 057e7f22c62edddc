// SPDX-License-Identifier: BSD-3-Clause
// The Internet checksum (RFC 1071): the complement of the ones' complement sum of 16-bit words.
#pragma once

#include "net/frame.hh"

namespace moscope::net {

/// A running sum; pieces have even lengths except for the last.
class Sum {
  public:
    Sum &add(Bytes bytes);
    Sum &add16(std::uint32_t word) {
        sum_ += word;
        return *this;
    }
    Sum &add32(std::uint32_t v) { return add16(v >> 16).add16(v & 0xffff); }
    /// The checksum of what was added; 0 if that included a right checksum.
    std::uint16_t checksum() const;

  private:
    std::uint64_t sum_ = 0;
};

/// Sum of the pseudo header of TCP and UDP (RFC 9293, section 3.1; RFC 768).
Sum pseudo_header(Ip source, Ip destination, std::uint8_t protocol, std::size_t length);

} // namespace moscope::net
