// SPDX-License-Identifier: BSD-3-Clause
// Translations that a core remembers, arranged for the interpreter: direct-mapped, one entry per 4-KiB page whatever
// the guest's page size, with the host address of the page where it may be accessed directly. Two of them exist per
// core, for supervisor and for user accesses. This is not the model of the family's TLBs, whose sizes and timing belong
// to detailed mode. A guest that changes page tables without INVLPG, CR3 and the like can see which entries a TLB still
// holds, so checkpoints hold them as well (translations.hh).
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/types.hh"

namespace moscope::x86 {

struct Tlb {
    static constexpr unsigned kEntries = 512;
    static constexpr Addr kNoPage = 1; ///< equals no page address

    /// What most accesses need to know of a page in DRAM.
    struct alignas(32) Direct {
        /// A bit that marks `read` and `write` in detailed mode: they then equal no page that functional mode looks
        /// for.
        static constexpr Addr kTimed = 16;
        Addr read = kNoPage;  ///< page that may be read directly
        Addr write = kNoPage; ///< page that may be written directly (dirty already, holds no decoded code)
        /// Added to a virtual address, gives the host address; in detailed mode, the DRAM address.
        std::uint64_t distance = 0;
        /// Detailed mode: L1Tlb::generation() when the page was last found there.
        std::uint64_t held = 0;
    };
    /// What the translation says, direct or not.
    struct Entry {
        Addr page = kNoPage;
        static constexpr Addr kGlobal = 1, kWritable = 2, kExecutable = 4, kDirty = 8;
        static constexpr unsigned kShiftAt = 4; ///< log2 of the guest's page size: six bits
        Addr phys = 12 << kShiftAt;             ///< physical page, with the bits above
        static unsigned shift_of(Addr bits) { return bits >> kShiftAt & 63; }
        unsigned shift() const { return shift_of(phys); }
        static constexpr Addr kShift = Addr{63} << kShiftAt;
        static constexpr Addr shifted(unsigned shift) { return Addr{shift} << kShiftAt; }
        PhysAddr at(Addr va) const { return PhysAddr((phys & ~Addr{0xfff}) | (va & 0xfff)); }
    };
    Direct direct[kEntries];
    Entry entry[kEntries];

    /// Large pages, in pieces of 2 MiB, from which the entries above are filled without another walk.
    struct Large {
        Addr number = ~Addr{0};            ///< virtual address / 2 MiB
        Addr phys = 21 << Entry::kShiftAt; ///< of the 2 MiB, with the bits of Entry::phys
        unsigned shift() const { return phys >> Entry::kShiftAt & 63; }
    };
    static constexpr unsigned kLarge = 64;
    Large large[kLarge];
    Large &large_at(Addr va) { return large[va >> 21 & (kLarge - 1)]; }

    static unsigned index(Addr va) { return (va >> 12) & (kEntries - 1); }
    Entry &at(Addr va) { return entry[index(va)]; }
    Direct &direct_at(Addr va) { return direct[index(va)]; }

    void flush_all() {
        for (unsigned i = 0; i < kEntries; ++i)
            forget(i);
        for (Large &l : large)
            l.number = ~Addr{0};
    }
    void flush_local() {
        for (Large &l : large)
            if (!(l.phys & Entry::kGlobal))
                l.number = ~Addr{0};
        for (unsigned i = 0; i < kEntries; ++i)
            if (entry[i].page != kNoPage && !(entry[i].phys & Entry::kGlobal))
                forget(i);
    }
    void flush_page(Addr va) {
        for (Large &l : large)
            if (l.number != ~Addr{0} && (l.number << 21 ^ va) >> l.shift() == 0)
                l.number = ~Addr{0};
        for (unsigned i = 0; i < kEntries; ++i)
            if (entry[i].page != kNoPage && (entry[i].page ^ va) >> entry[i].shift() == 0)
                forget(i);
    }
    /// No direct writes to this physical page from here on (it holds decoded code now).
    void guard(Addr phys_page) {
        for (unsigned i = 0; i < kEntries; ++i)
            if ((entry[i].phys & ~Addr{0xfff}) == phys_page)
                direct[i].write = kNoPage;
    }

  private:
    void forget(unsigned i) {
        entry[i].page = kNoPage;
        direct[i].read = direct[i].write = kNoPage;
    }
};

} // namespace moscope::x86
