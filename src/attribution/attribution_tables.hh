// SPDX-License-Identifier: BSD-3-Clause
// Attribution of all lines as packed rows, for the front end to name and to write as columns (docs/run-directory.md).
// Little-endian; times in femtoseconds.
#pragma once

#include <cstdint>
#include <string>

namespace moscope {

struct LineRow {
    std::uint64_t line, va, address_space; ///< DRAM address; a sample of how it was reached
    std::int64_t stall, spin;
    std::uint64_t transfers;
    std::int64_t class_stall[5];
    std::uint32_t class_count[5];
    std::uint8_t offset; ///< the byte that was waited for longest
    std::uint8_t flags;  ///< bit 0: by page walks, 1: by fetches, 2: by user mode, 3: what follows of its page was seen
    std::uint16_t unused;
    std::uint64_t page_flags, page_part_of, page_index; ///< page_watch.hh
    std::uint32_t page_type, page_before;
    std::uint32_t use; ///< a line has a row for each use that its page came to; as in TransactionRecord
    std::uint32_t unused2;
    std::uint64_t waiters; ///< cores that waited, one bit each
};
static_assert(sizeof(LineRow) == 160);

struct PairRow {
    std::uint64_t writer, waiter; ///< instructions; writer 0: no other core had written
    std::uint64_t address_space;  ///< the waiter's; 0 of the kernel
    std::int64_t stall, spin;
    std::uint32_t line; ///< index of its row
    std::uint32_t count;
};
static_assert(sizeof(PairRow) == 48);

/// Times that a controller of chip `from` sent the line to a core of chip `to`.
struct TransferRow {
    std::int64_t stall;
    std::uint64_t count;
    std::uint32_t line;              ///< index of its row
    std::uint8_t supplier, from, to; ///< kind of controller, by number; chips
    std::uint8_t unused;
};
static_assert(sizeof(TransferRow) == 24);

struct AttributionTables {
    std::string lines, pairs, transfers; ///< rows one after the other; lines by address, those of one line together
};

} // namespace moscope
