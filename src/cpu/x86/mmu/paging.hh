// SPDX-License-Identifier: BSD-3-Clause
// Address translation (AMD 24593, chapter 5): four-level long-mode paging with 4-KiB, 2-MiB and 1-GiB pages, PAE
// and legacy two-level paging, accessed and dirty bits, NX, write protection, reserved bits, and the error code
// of each fault.
#pragma once

#include "cpu/x86/core.hh"

namespace moscope::x86 {

enum class Kind : std::uint8_t { read, write, fetch };

/// Physical address of `va` for an access by `user` (or the supervisor); sets accessed and dirty bits and fills
/// the TLB. False: #PF or #GP in Core::fault.
bool translate(Core &, Addr va, Kind, bool user, PhysAddr &out);

/// Fills in Tlb::Direct for the TLB's entry of `va`, whose other part is filled in already.
void let_direct(Core &, bool user, Addr va);

/// As translate, for debuggers: no side effects, no rights. False: not mapped.
bool peek_translation(const Core &, Addr va, PhysAddr &out);
/// The same in the address space of another CR3, with the modes of the core.
bool peek_translation(const Core &, Addr cr3, Addr va, PhysAddr &out);

constexpr bool canonical(Addr va) { return static_cast<std::int64_t>(va << 16) >> 16 == static_cast<std::int64_t>(va); }

} // namespace moscope::x86
