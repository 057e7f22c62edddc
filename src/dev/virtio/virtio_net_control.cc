// SPDX-License-Identifier: BSD-3-Clause
// The control queue of the network device (virtio 1.2, section 5.1.6.5): the number of queue pairs in use, receive side
// scaling. Other commands are answered with an error.
#include <bit>

#include "dev/virtio/virtio_net.hh"

namespace moscope::dev {

namespace {

enum : std::uint8_t { kClassMultiQueue = 4 };
enum : std::uint8_t { kSetPairs = 0, kConfigureRss = 1 };
enum : std::uint8_t { kOk = 0, kError = 1 };
constexpr std::uint64_t kLongestCommand = 1024;

std::uint16_t le16(std::span<const std::uint8_t> b, std::size_t at) {
    return static_cast<std::uint16_t>(b[at] | b[at + 1] << 8);
}

} // namespace

void VirtioNet::serve_control(unsigned queue) {
    Virtqueue::Chain chain;
    while (take(queue, chain)) {
        if (chain.readable_bytes() < 2 || chain.readable_bytes() > kLongestCommand || chain.writable.empty()) {
            fail("a control command of invalid length");
            return;
        }
        std::vector<std::uint8_t> command(chain.readable_bytes());
        SegmentCursor(dma(), chain.readable).read(command);
        if (resetting())
            return;
        const std::uint8_t answer = control(command) ? kOk : kError;
        SegmentCursor(dma(), chain.writable).write({&answer, 1});
        put_back(queue, chain.head, 1);
        signal(queue);
    }
}

bool VirtioNet::control(const std::vector<std::uint8_t> &command) {
    const std::span<const std::uint8_t> body = std::span(command).subspan(2);
    if (command[0] != kClassMultiQueue)
        return false;
    if (command[1] == kSetPairs && driver_has(kMultiQueue) && body.size() >= 2) {
        const unsigned pairs = le16(body, 0);
        if (pairs < 1 || pairs > pairs_)
            return false;
        active_pairs_ = pairs;
        return true;
    }
    return command[1] == kConfigureRss && driver_has(kRss) && configure_rss(body);
}

bool VirtioNet::configure_rss(std::span<const std::uint8_t> b) {
    if (b.size() < 8)
        return false;
    RssConfig r;
    r.types = le16(b, 0) | static_cast<std::uint32_t>(le16(b, 2)) << 16;
    const std::size_t entries = std::size_t{le16(b, 4)} + 1;
    r.unclassified = le16(b, 6);
    if (!std::has_single_bit(entries) || entries > RssConfig::kEntries || b.size() < 8 + 2 * entries + 3)
        return false;
    for (std::size_t i = 0; i < entries; ++i) {
        r.table.push_back(le16(b, 8 + 2 * i));
        if (r.table.back() >= pairs_)
            return false;
    }
    const std::size_t after = 8 + 2 * entries;
    const unsigned pairs = le16(b, after), key_bytes = b[after + 2];
    if (pairs < 1 || pairs > pairs_ || r.unclassified >= pairs_ || key_bytes > RssConfig::kKeyBytes ||
        b.size() < after + 3 + key_bytes)
        return false;
    const auto key = b.subspan(after + 3, key_bytes);
    r.key.assign(key.begin(), key.end());
    rss_ = std::move(r);
    active_pairs_ = pairs;
    return true;
}

} // namespace moscope::dev
