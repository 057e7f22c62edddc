// SPDX-License-Identifier: BSD-3-Clause
// Coherence messages. A message is a plain, trivially copyable record from a pool, owned by exactly one place
// at a time (a buffer, a link, a controller at work on it); a message to several destinations is cloned where
// its ways part. Besides the fields that the protocol declares it carries the history of the transaction that
// it works for: where that transaction's time went so far, segment by segment. `account` moves a stamp
// forward and charges the elapsed time to one segment, so the segments always add up to the whole.
#pragma once

#include <array>
#include <cstddef>
#include <cstring>
#include <new>
#include <type_traits>

#include "base/types.hh"
#include "mem/path.hh"
#include "mem/ruby/runtime/net_dest.hh"

namespace moscope::ruby {

struct Message {
    // Set when the message is made and enqueued. Each group of eight bytes is written at once.
    std::uint16_t bytes = 0;       ///< size of the whole record, for cloning
    std::uint16_t dest_offset = 0; ///< offset of the NetDest field `Destination`; 0: none
    std::uint16_t type = 0;        ///< protocol's message type number, for traces
    NodeIndex source = 0;          ///< controller that sent it
    NodeIndex to = kMaxNodes;      ///< in the network: its destination; kMaxNodes: several, or none
    std::uint8_t vnet = 0;         ///< virtual network it travels on; 0xff: internal to a controller
    bool carries_data = false;     ///< 64 bytes of data travel with it
    std::uint8_t size_type = 0;    ///< MessageSizeType
    std::uint8_t hops = 0;         ///< links crossed by this message
    bool entered = false;          ///< the network has counted its entry
    bool unused = false;
    Addr line = 0;     ///< line that the message is about, for traces
    std::uint64_t uid; ///< number of the message, unique in a run

    // History of the transaction that it works for. Whoever makes the message sets it.
    TxnId txn;
    std::uint16_t txn_core;
    std::uint16_t txn_hops; ///< links crossed on the transaction's path so far
    std::uint32_t entry;    ///< order of entry into the network, on its chip
    Tick stamp;             ///< path accounted up to here
    PathTimes path{PathTimes::Unset{}};
    Tick delay; ///< where messages are delayed at random: at least how much later it arrives (Jitter::draw)

    Message() {} // NOLINT(cppcoreguidelines-pro-type-member-init): as above

    // Set the beginning of the record after the initializers have run, with one store each.
    void set_kind(std::uint32_t bytes_, std::size_t dest_offset_, std::uint16_t type_) {
        static_assert(offsetof(Message, bytes) == 0 && offsetof(Message, source) == 6);
        const std::uint64_t all = bytes_ | std::uint64_t{dest_offset_} << 16 | std::uint64_t{type_} << 32;
        std::memcpy(reinterpret_cast<char *>(this), &all, sizeof all);
    }
    void set_size(bool carries_data_, std::uint8_t size_type_) {
        static_assert(offsetof(Message, to) == 8 && offsetof(Message, carries_data) == 11 &&
                      offsetof(Message, size_type) == 12 && offsetof(Message, unused) == 15);
        const std::uint64_t all = kMaxNodes | std::uint64_t{carries_data_} << 24 | std::uint64_t{size_type_} << 32;
        std::memcpy(reinterpret_cast<char *>(this) + offsetof(Message, to), &all, sizeof all);
    }

    /// The history of a message that works for no transaction.
    void set_no_history() {
        txn = 0;
        txn_core = 0xffff;
        txn_hops = 0;
        path = {};
    }
    /// Takes over the history of the message that caused this one.
    void inherit(const Message &m) {
        // Four fields at once, which the compiler would copy one by one. This message's own `entry` is set later.
        static_assert(offsetof(Message, stamp) == offsetof(Message, txn) + 16);
        std::memcpy(reinterpret_cast<char *>(this) + offsetof(Message, txn),
                    reinterpret_cast<const char *>(&m) + offsetof(Message, txn), 16);
        path = m.path;
    }
    void account(Segment s, Tick until) {
        path.in[static_cast<unsigned>(s)] += until - stamp;
        stamp = until;
    }

    NetDest &destination() { return *reinterpret_cast<NetDest *>(reinterpret_cast<char *>(this) + dest_offset); }
    const NetDest &destination() const { return const_cast<Message *>(this)->destination(); }
    /// Sets `to`, before the message enters the network.
    void note_destination() { to = dest_offset ? destination().sole_index() : static_cast<NodeIndex>(kMaxNodes); }
};

/// Stands for the cause where there is none: a message without a transaction and without a sender.
extern Message no_message;

} // namespace moscope::ruby
