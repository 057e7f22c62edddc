// SPDX-License-Identifier: BSD-3-Clause
#include "net/link.hh"

#include <algorithm>

namespace moscope::net {

namespace {

constexpr std::uint64_t kTicksPerSecond = 1'000'000'000'000'000;

} // namespace

Tick Link::wire_time(std::size_t bytes) const {
    if (p_.bits_per_second == 0)
        return 0;
    const std::uint64_t bits = 8 * (std::max(bytes, kLeastFrame) + kWireOverhead);
    return static_cast<Tick>(static_cast<unsigned __int128>(bits) * kTicksPerSecond / p_.bits_per_second);
}

void Link::fly(Flying f) {
    f.order = order_++;
    heap_.push_back(std::move(f));
    std::push_heap(heap_.begin(), heap_.end(), [](const Flying &a, const Flying &b) { return a.later_than(b); });
}

void Link::send(Direction d, Frame frame, Tick now) {
    Counts &c = counts_[d];
    ++c.frames;
    c.bytes += frame.size();
    free_[d] = leaves(d, frame.size(), now);
    Tick due = free_[d] + p_.latency;
    if (chance(p_.lost)) {
        ++c.lost;
        return;
    }
    if (chance(p_.duplicated)) {
        ++c.duplicated;
        fly({due, 0, static_cast<std::uint8_t>(d), frame});
    }
    if (chance(p_.delayed)) {
        ++c.delayed;
        due += static_cast<Tick>(rng_.below(static_cast<std::uint64_t>(p_.longest_delay) + 1));
    }
    fly({due, 0, static_cast<std::uint8_t>(d), std::move(frame)});
}

bool Link::receive(Tick now, Direction &d, Frame &frame) {
    if (heap_.empty() || heap_.front().due > now)
        return false;
    std::pop_heap(heap_.begin(), heap_.end(), [](const Flying &a, const Flying &b) { return a.later_than(b); });
    d = static_cast<Direction>(heap_.back().direction & 1);
    frame = std::move(heap_.back().frame);
    heap_.pop_back();
    return true;
}

void Link::archive(Archive &a) {
    a.section("link");
    a(rng_, heap_, order_, free_, counts_);
}

} // namespace moscope::net
