// SPDX-License-Identifier: BSD-3-Clause
// Attribution of all lines as packed rows, for the front end to name and to write as columns (docs/run-directory.md).
// Little-endian; times in femtoseconds.
#pragma once

#include <cstdint>
#include <string>

namespace moscope {

/// Waiting for one line during one use of its page.
struct LineRow {
    std::uint64_t line;              ///< DRAM address
    std::uint64_t va, address_space; ///< of the first access that had a virtual address
    std::int64_t stall, spin;
    std::uint64_t spin_iterations;
    std::uint64_t transfers; ///< transactions
    std::int64_t class_stall[5];
    std::uint32_t class_count[5];
    std::uint8_t offset; ///< the byte with the most waiting
    std::uint8_t flags;  ///< bit 0: by page walks, 1: by fetches, 2: by user mode, 3: the page fields are known
    std::uint16_t unused;
    std::uint64_t page_flags, page_part_of, page_index; ///< page_watch.hh
    std::uint32_t page_type, page_before;
    std::uint32_t use; ///< number of the line's use; as in TransactionRecord
    std::uint32_t unused2;
    std::uint64_t waiters; ///< cores that waited, one bit each
};
static_assert(sizeof(LineRow) == 168);

/// Waiting of one instruction for a line, or a byte of it, that another instruction wrote last.
struct PairRow {
    std::uint64_t writer, waiter; ///< instructions; writer 0: no other core had written
    std::uint64_t address_space;  ///< the waiter's; 0: kernel code
    std::int64_t stall, spin;
    std::uint32_t line;  ///< index of its LineRow
    std::uint32_t count; ///< transactions
    std::uint8_t offset; ///< the byte that the waiter accessed
    std::uint8_t unused[7];
};
static_assert(sizeof(PairRow) == 56);

/// Times that a controller of chip `from` sent the line to a core of chip `to`.
struct TransferRow {
    std::int64_t stall;
    std::uint64_t count;
    std::uint32_t line;              ///< index of its LineRow
    std::uint8_t supplier, from, to; ///< the controller's machine type, by number; chips
    std::uint8_t unused;
};
static_assert(sizeof(TransferRow) == 24);

/// Rows one after the other: lines by address and use; pairs and transfers in the order of their lines.
struct AttributionRows {
    std::string lines, pairs, transfers;
};

} // namespace moscope
