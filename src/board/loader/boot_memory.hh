// SPDX-License-Identifier: BSD-3-Clause
// Guest memory as a boot loader uses it: the firmware's map of address ranges (ACPI 6.4, section 15: the types of
// the E820 interface), writes that must fall into DRAM, and a small area below 640 KiB from which the structures
// that a protocol hands to the kernel are taken.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/types.hh"
#include "board/loader/entry_state.hh"
#include "cpu/x86/state.hh"
#include "mem/phys_map.hh"

namespace moscope::loader {

using Bytes = std::span<const std::uint8_t>;

enum class RangeKind : std::uint32_t { usable = 1, reserved = 2, acpi = 3, acpi_nvs = 4 };

struct MemoryRange {
    Addr start = 0;
    std::uint64_t size = 0;
    RangeKind kind = RangeKind::usable;
};

class BootMemory {
  public:
    /// Structures for the kernel are placed from here on, up to kLowEnd.
    static constexpr Addr kLow = 0x10000, kLowEnd = 0x90000;

    BootMemory(const PhysMap &map, std::vector<MemoryRange> ranges) : map_(map), ranges_(std::move(ranges)) {}

    const std::vector<MemoryRange> &ranges() const { return ranges_; }
    /// Whether [start, start + size) lies in one usable range.
    bool usable(Addr start, std::uint64_t size) const;
    /// The highest place for `size` bytes in usable memory, a multiple of `align`, within [least, most]; 0 if none.
    Addr highest(std::uint64_t size, std::uint64_t align, Addr least, Addr most) const;

    /// Structures are placed behind a kernel that lies at [start, end), if it lies in their area.
    void keep_clear_of(Addr start, Addr end) {
        if (start < kLowEnd && end > low_)
            low_ = end;
    }
    /// Memory below 640 KiB for a structure of the protocol. UserError if it is full or not usable.
    Addr take_low(std::uint64_t size, std::uint64_t align);
    /// Writes to DRAM; UserError naming `what` if part of it is not usable memory.
    void write(Addr to, Bytes bytes, const std::string &what);
    void zero(Addr to, std::uint64_t size, const std::string &what);
    /// take_low, then write.
    Addr place_low(Bytes bytes, std::uint64_t align);
    /// A text with its final zero, in low memory.
    Addr place_text(const std::string &text);

  private:
    std::byte *at(Addr a, std::uint64_t size, const std::string &what) const;

    const PhysMap &map_;
    std::vector<MemoryRange> ranges_;
    Addr low_ = kLow;
};

/// A little-endian structure under construction, by byte offset.
class Record {
  public:
    explicit Record(std::size_t size) : bytes_(size) {}
    template <class T> void put(std::size_t offset, T value) {
        for (std::size_t i = 0; i < sizeof(T); ++i)
            bytes_.at(offset + i) = static_cast<std::uint8_t>(static_cast<std::uint64_t>(value) >> (8 * i));
    }
    void put_bytes(std::size_t offset, Bytes from);
    Bytes bytes() const { return bytes_; }

  private:
    std::vector<std::uint8_t> bytes_;
};

/// Reads a little-endian value; the caller has checked the bounds.
template <class T> T get(Bytes b, std::size_t offset) {
    std::uint64_t v = 0;
    for (std::size_t i = 0; i < sizeof(T); ++i)
        v |= static_cast<std::uint64_t>(b[offset + i]) << (8 * i);
    return static_cast<T>(v);
}

/// Writes a GDT into low memory and gives the state for flat 32-bit protected mode without paging.
EntryState flat_32bit(BootMemory &memory, Addr rip);
/// Writes a GDT and page tables that map the first 4 GiB onto themselves, and gives the state for 64-bit mode.
EntryState identity_64bit(BootMemory &memory, Addr rip);

} // namespace moscope::loader
