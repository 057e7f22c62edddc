// SPDX-License-Identifier: BSD-3-Clause
// Segmentation (AMD 24593, chapter 4): descriptors, loading of segment registers with all their checks, stack
// selection by the TSS.
#pragma once

#include "cpu/x86/core.hh"

namespace moscope::x86 {

/// MOV Sreg, POP Sreg, LDS...: any segment register but CS. False: fault.
bool load_segment(Core &, Seg, std::uint16_t selector);
/// Real and virtual-8086 mode: selector * 16.
void load_real_segment(Core &, Seg, std::uint16_t selector);
/// Reads the descriptor (8 bytes) of a selector. False: fault with the given vector and the selector as error code.
bool read_descriptor(Core &, std::uint16_t selector, std::uint64_t &descriptor, unsigned fault_vector);
/// The hidden part from a descriptor.
Segment unpack(std::uint16_t selector, std::uint64_t descriptor);

} // namespace moscope::x86
