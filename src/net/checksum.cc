// SPDX-License-Identifier: BSD-3-Clause
#include "net/checksum.hh"

namespace moscope::net {

Sum &Sum::add(Bytes bytes) {
    std::size_t i = 0;
    for (; i + 1 < bytes.size(); i += 2)
        sum_ += get16(bytes, i);
    if (i < bytes.size())
        sum_ += static_cast<std::uint32_t>(bytes[i]) << 8;
    return *this;
}

std::uint16_t Sum::checksum() const {
    std::uint64_t s = sum_;
    while (s >> 16)
        s = (s & 0xffff) + (s >> 16);
    return static_cast<std::uint16_t>(~s);
}

Sum pseudo_header(Ip source, Ip destination, std::uint8_t protocol, std::size_t length) {
    Sum s;
    s.add32(source).add32(destination).add16(protocol).add32(static_cast<std::uint32_t>(length));
    return s;
}

} // namespace moscope::net
