// SPDX-License-Identifier: BSD-3-Clause
// Parameters of the network card (src/schema/nic.py), and what a run adds to them.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "schema/nic.hh"

namespace moscope::dev {

struct NicSettings : NicParams {
    std::string pcap; ///< file for all frames; empty: none
};

/// What the card and the clients counted, by name; of each load generator that was started, what it reports.
struct NetworkReport {
    std::map<std::string, std::uint64_t> counts;
    std::map<std::string, std::string> drivers;
};

} // namespace moscope::dev
