// SPDX-License-Identifier: BSD-3-Clause
// Parts of a Router that its hot paths share: a packet leaves its input buffer, and the credit for the buffer returns.
#pragma once

#include "mem/ruby/network/router.hh"

namespace moscope::ruby {

/// A packet has left its buffers behind the link. The sender may use them again from tick `usable` on.
[[gnu::always_inline]] inline void Router::freed_behind(Link &link, Link::Channel &channel, bool data, Tick usable) {
    if (__builtin_expect(!link.returning.push(usable, channel, data), 0))
        freed_before_another(link, channel, data, usable);
    else if (link.waiting)
        link.from->credit_returned(link, usable);
}

[[gnu::always_inline]] inline void Router::free_input(const Message &m, unsigned input, Tick at) {
    if (Link *const link = near_in_[input])
        freed_behind(*link, *link->of_vnet[m.vnet], m.carries_data, at + link->credit_flight);
    else if (input == 0)
        network_.free_source(m.source, m.vnet);
    else
        post_freed(*in_[input], m, at);
}

/// A part of a packet leaves its input buffer at tick `at`.
[[gnu::always_inline]] inline void Router::part_left(const Message &m, unsigned input, std::uint32_t slot, Tick at) {
    if (__builtin_expect(slot, 0))
        part_of_several_left(m, input, slot, at);
    else
        free_input(m, input, at);
}

} // namespace moscope::ruby
