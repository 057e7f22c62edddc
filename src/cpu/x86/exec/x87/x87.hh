// SPDX-License-Identifier: BSD-3-Clause
// Shared code of the x87 instructions (AMD 24592 chapter 6, 26569): consistent control and status words, tags, and the
// availability of the unit.
#pragma once

#include "cpu/x86/core.hh"

namespace moscope::x86::x87 {

constexpr std::uint16_t kFlags = 0x3f, kInvalid = 1, kStackFault = 0x40, kC0 = 0x100, kC1 = 0x200, kC2 = 0x400,
                        kC3 = 0x4000, kControlMeans = 0x1f3f, kControlFixed = 0x40;

/// ES and B follow from the exception flags and their masks.
inline void summarize(X87 &f) {
    const bool pending = f.status & ~f.control & kFlags;
    f.status = static_cast<std::uint16_t>((f.status & ~(X87::kSummary | X87::kBusy)) |
                                          (pending ? X87::kSummary | X87::kBusy : 0));
}
inline void set_control(X87 &f, std::uint16_t x) {
    f.control = static_cast<std::uint16_t>((x & kControlMeans) | kControlFixed);
    summarize(f);
}
inline void set_status(X87 &f, std::uint16_t x) {
    f.status = x;
    summarize(f);
}

/// CR0 allows x87 instructions that do not wait; false: #NM.
inline bool ready_control(Core &c) { return !(c.cr0 & (cr0::em | cr0::ts)) || c.raise(exc_nm); }
/// The same for those that wait for a pending exception; false: #NM or #MF.
inline bool ready(Core &c) {
    if (__builtin_expect(!(c.cr0 & (cr0::em | cr0::ts)) && !(c.fpu.status & X87::kSummary), 1))
        return true;
    return c.raise((c.cr0 & (cr0::em | cr0::ts)) ? exc_nm : exc_mf);
}

} // namespace moscope::x86::x87
