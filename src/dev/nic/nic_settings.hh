// SPDX-License-Identifier: BSD-3-Clause
// Parameters of the network card (src/schema/nic.py), and what a run adds to them.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "schema/nic.hh"

namespace moscope::dev {

struct NicSettings : NicParams {
    std::string pcap; ///< file for all frames; empty: none
};

/// What waits in the card at one moment.
struct NetworkDepths {
    struct Queue {
        std::uint64_t in_waiting = 0;  ///< frames in the receive FIFO for this queue, whose transfer has not begun
        std::uint64_t in_buffers = 0;  ///< receive buffers that the driver has provided and no frame has filled
        std::uint64_t out_waiting = 0; ///< frames that the driver wants to send and the card has not fetched
    };
    std::uint64_t fifo_frames = 0, fifo_bytes = 0; ///< in the receive FIFO, until they are in the guest's buffers
    std::uint64_t out_fifo_frames = 0;             ///< in the transmit FIFO, until they have left on the link
    std::vector<Queue> queues;                     ///< by pair, of those that the driver uses
};

/// Counts of the card and its link, by name, and the report of each load generator that was started, by name.
struct NetworkReport {
    std::map<std::string, std::uint64_t> counts;
    std::map<std::string, std::string> drivers;
    NetworkDepths depths;
};

} // namespace moscope::dev
