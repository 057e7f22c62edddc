// SPDX-License-Identifier: BSD-3-Clause
// Parameters of one node's DRAM: the parts' timing (JEDEC JESD79-2 and JESD79-3 tables, held as data in
// configs/dram), the geometry behind the node's channels, and the memory controller's own choices (family 10h:
// AMD 31116, DRAM controllers). Times are femtoseconds, sizes bytes; a timing that is no whole number of DRAM
// clocks is rounded up, as a controller's registers are programmed. Keys of the JSON form: docs/dram.md.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

#include "base/types.hh"

namespace moscope::dram {

/// Minimum distances between commands, fs. Names are JEDEC's.
struct TimingParams {
    Tick tCL = 0;   ///< read command to first data
    Tick tCWL = 0;  ///< write command to first data
    Tick tRCD = 0;  ///< activate to read or write, same bank
    Tick tRP = 0;   ///< precharge to activate, same bank
    Tick tRAS = 0;  ///< activate to precharge, same bank
    Tick tRC = 0;   ///< activate to activate, same bank
    Tick tWR = 0;   ///< end of write data to precharge, same bank
    Tick tWTR = 0;  ///< end of write data to read command, same rank
    Tick tRTP = 0;  ///< read command to precharge, same bank
    Tick tRRD = 0;  ///< activate to activate, same rank
    Tick tFAW = 0;  ///< window that holds at most four activates of a rank; 0: no such limit (four-bank parts)
    Tick tCCD = 0;  ///< column command to column command
    Tick tRTRS = 0; ///< data bus idle between bursts of different ranks
    Tick tRTW = 0;  ///< data bus idle between a read burst and a write burst
    Tick tREFI = 0; ///< mean distance of refreshes of a rank; 0: no refresh
    Tick tRFC = 0;  ///< refresh to activate, same rank
};

/// When a row that no request needs is closed.
enum class PagePolicy : std::uint8_t {
    open,   ///< when another row of the bank is wanted
    closed, ///< with the last access to it that is queued (auto-precharge)
    forced, ///< with every access, whatever is queued (family 10h: ForceAutoPchg)
    idle    ///< when the bank has not been accessed for idle_close
};

struct DramParams {
    std::string standard; ///< name of the timing table, for reports
    Tick tCK = 0;         ///< DRAM clock period; two transfers per period
    TimingParams t;

    unsigned channels = 2;      ///< 64-bit channels of the node
    unsigned channel_bytes = 8; ///< data width of one channel
    bool ganged = false;        ///< channels work in lock step as one wide channel
    unsigned ranks = 1;         ///< per channel
    unsigned banks = 8;         ///< per rank
    unsigned row_bytes = 8192;  ///< one row of one bank across one channel
    unsigned rows = 16384;      ///< per bank
    unsigned burst_lengths = 0; ///< bit n set: the parts transfer bursts of n

    /// Fields of a line address from the most significant: row, rank, bank, column, channel; "name:n" takes n bits.
    std::string mapping = "row rank bank column channel";
    bool bank_swizzle = false; ///< bank bits are XORed with the low row bits
    bool channel_hash = false; ///< channel bit is XORed with the parity of address bits 16-20

    PagePolicy page_policy = PagePolicy::open;
    Tick idle_close = 0;              ///< for PagePolicy::idle
    unsigned read_entries = 64;       ///< reads that a node's controller holds
    unsigned write_entries = 64;      ///< writes that it holds
    unsigned window = 16;             ///< oldest reads of a channel among which the scheduler chooses
    unsigned write_high = 12;         ///< writes of a channel at which it turns to writing
    unsigned write_low = 4;           ///< and down to which it then writes while reads wait
    unsigned bypass_max = 15;         ///< times that the oldest request of a channel may be overtaken
    Tick frontend = 0;                ///< arrival to the scheduler
    Tick backend = 0;                 ///< last data on the bus to completion
    bool critical_word_first = false; ///< a read completes with the first clock of its burst

    unsigned bus_channels() const { return ganged ? 1 : channels; }
    unsigned bus_bytes() const { return ganged ? channels * channel_bytes : channel_bytes; }
    unsigned bus_row_bytes() const { return ganged ? channels * row_bytes : row_bytes; }
    unsigned burst_length() const { return kLineBytes / bus_bytes(); }
    std::uint64_t capacity() const { return std::uint64_t{channels} * ranks * banks * rows * row_bytes; }
    /// Bytes per second with the data bus never idle.
    double peak_bandwidth() const { return 2e15 * channels * channel_bytes / static_cast<double>(tCK); }

    /// Throws UserError ("dram.KEY: problem: expected ...").
    void validate() const;

    static DramParams from_json(const nlohmann::json &j);
    static DramParams from_json_text(std::string_view text);
};

} // namespace moscope::dram
