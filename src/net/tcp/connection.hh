// SPDX-License-Identifier: BSD-3-Clause
// The state of one TCP connection (RFC 9293, section 3.3). tcp.cc and tcp_receive.cc change it.
#pragma once

#include <map>
#include <vector>

#include "net/tcp/segment.hh"

namespace moscope::net {

/// How a connection ended, for its user.
enum class TcpEnd : std::uint8_t {
    finished, ///< both sides have sent everything
    refused,  ///< no server on that port
    reset,    ///< by the other side
    stalled,  ///< bytes were repeated as often as allowed, and never acknowledged
};

struct TcpConnection {
    enum State : std::uint8_t {
        kSynSent,
        kSynReceived,
        kEstablished,
        kFinWait1, ///< our FIN is under way
        kFinWait2, ///< and acknowledged
        kCloseWait,
        kClosing,
        kLastAck,
        kTimeWait,
        kGone ///< to be removed
    };
    State state = kSynSent;
    std::uint8_t user = 0;
    Endpoint local, remote;

    // Sending. `unacknowledged` begins at sequence number `oldest`, and its bytes before `next` were sent. After a
    // time-out `next` goes back; `highest` is the highest that `next` has been.
    std::vector<std::uint8_t> unacknowledged;
    std::uint32_t oldest = 0, next = 0, highest = 0;
    std::uint32_t window = 0;                                      ///< bytes from `oldest` on that the other side takes
    std::uint32_t window_sequence = 0, window_acknowledgement = 0; ///< of the segment that advertised `window`
    std::uint16_t largest = 536;                                   ///< bytes of a segment
    bool finish = false;                                           ///< a FIN follows the last byte
    std::uint8_t repeats = 0, duplicates = 0;                      ///< time-outs, and equal acknowledgements, in a row
    Tick deadline = kNever;

    // Receiving.
    std::uint32_t expected = 0;                               ///< next sequence number
    std::uint64_t position = 0;                               ///< and its place in the stream of bytes
    std::map<std::uint64_t, std::vector<std::uint8_t>> early; ///< bytes beyond a gap, by place
    std::uint64_t end = ~0ull;                                ///< place of the other side's FIN
    bool acknowledge = false;                                 ///< an acknowledgement is owed

    /// Takes the window that a segment advertises, unless a segment sent later has arrived before it (section 3.10.7.4:
    /// SND.WL1, SND.WL2).
    void take_window(const Segment &s) {
        const auto since = static_cast<std::int32_t>(s.sequence - window_sequence);
        if (since < 0 || (since == 0 && static_cast<std::int32_t>(s.acknowledgement - window_acknowledgement) < 0))
            return;
        start_window(s);
    }
    void start_window(const Segment &s) {
        window = s.window;
        window_sequence = s.sequence;
        window_acknowledgement = s.acknowledgement;
    }

    bool synchronized() const { return state >= kEstablished && state < kTimeWait; }
    bool may_send() const {
        return state == kEstablished || state == kCloseWait || state == kSynSent || state == kSynReceived;
    }
    /// Whether sequence numbers beyond the bytes were sent: the FIN's.
    bool fin_sent() const { return highest - oldest > unacknowledged.size(); }

    void archive(Archive &a) {
        a(state, user, local, remote, unacknowledged, oldest, next, highest, window, largest, finish, repeats,
          duplicates, deadline, expected, position, early, end, acknowledge, window_sequence, window_acknowledgement);
    }
};

} // namespace moscope::net
