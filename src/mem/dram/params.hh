// SPDX-License-Identifier: BSD-3-Clause
// Parameters of one node's DRAM (src/schema/dram.py, docs/dram.md). Times are femtoseconds, sizes bytes. A timing that is
// not a whole number of DRAM clocks is rounded up, as a controller's registers are programmed.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

#include "base/types.hh"
#include "schema/dram.hh"

namespace moscope::dram {

/// Limits, defaults and meanings of most fields: src/schema/dram.py.
struct DramParams : DramSettings {
    std::string standard; ///< name of the timing table, for reports
    TimingParams t;
    unsigned burst_lengths = 0; ///< bit n set: the parts transfer bursts of n
    /// Fields of a line address from the most significant: row, rank, bank, column, channel; "name:n" takes n bits.
    std::string mapping = "row rank bank column channel";
    PagePolicy page_policy = PagePolicy::open;

    unsigned bus_channels() const { return ganged ? 1 : channels; }
    unsigned bus_bytes() const { return static_cast<unsigned>(ganged ? channels * channel_bytes : channel_bytes); }
    unsigned bus_row_bytes() const { return static_cast<unsigned>(ganged ? channels * row_bytes : row_bytes); }
    unsigned burst_length() const { return kLineBytes / bus_bytes(); }
    std::uint64_t capacity() const { return std::uint64_t{channels} * ranks * banks * rows * row_bytes; }
    /// Bytes per second with the data bus never idle.
    double peak_bandwidth() const {
        return 2e15 * channels * static_cast<double>(channel_bytes) / static_cast<double>(tCK_fs);
    }

    /// Throws UserError ("dram.KEY: problem: expected ...").
    void validate() const;

    static DramParams from_json(const nlohmann::json &j);
    static DramParams from_json_text(std::string_view text);
};

} // namespace moscope::dram
