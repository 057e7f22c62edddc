// SPDX-License-Identifier: BSD-3-Clause
// Segmentation (AMD 24593, chapter 4): descriptors, loading of segment registers with all their checks, operand
// and stack addresses outside 64-bit mode, stack selection by the TSS.
#pragma once

#include "cpu/x86/core.hh"

namespace moscope::x86 {

/// Bits 5:0 of Segment::attr of the system descriptors that matter (S = 0).
enum SystemType : unsigned {
    sys_tss16 = 1,
    sys_ldt = 2,
    sys_tss16_busy = 3,
    sys_call16 = 4,
    sys_task_gate = 5,
    sys_interrupt16 = 6,
    sys_trap16 = 7,
    sys_tss = 9,
    sys_tss_busy = 11,
    sys_call = 12,
    sys_interrupt = 14,
    sys_trap = 15
};

/// MOV Sreg, POP Sreg, LDS...: any segment register but CS. False: fault.
bool load_segment(Core &, Seg, std::uint16_t selector);
/// Real and virtual-8086 mode: selector * 16.
void load_real_segment(Core &, Seg, std::uint16_t selector);
/// Sets CS and the privilege level, after all checks; the selector's RPL becomes `cpl`.
void set_code_segment(Core &, Segment, unsigned cpl);
/// Leaves a segment register without a segment, as loading a null selector does.
void set_null_segment(Core &, Seg, std::uint16_t selector);

/// A selector without its low two bits, as error codes show it.
constexpr std::uint32_t selector_error(std::uint16_t selector) { return selector & 0xfffcu; }
constexpr bool null_selector(std::uint16_t selector) { return (selector & 0xfffc) == 0; }
constexpr unsigned rpl(std::uint16_t selector) { return selector & 3; }

/// Reads the descriptor (8 bytes) of a selector. False: fault with the given vector and the selector as error code.
bool read_descriptor(Core &, std::uint16_t selector, std::uint64_t &descriptor, unsigned fault_vector);
/// Bytes 15:8 of a long-mode system descriptor, whose first half has been read. False: fault as read_descriptor.
bool read_descriptor_high(Core &, std::uint16_t selector, std::uint64_t &high, unsigned fault_vector);
/// The descriptor as LAR, LSL, VERR and VERW see it: false if the selector leads to none; page faults set `faulted`.
bool peek_descriptor(Core &, std::uint16_t selector, std::uint64_t &descriptor, bool &faulted);
/// Sets bits in the type of a descriptor in memory (accessed, busy). False: page fault.
bool change_descriptor_type(Core &, std::uint16_t selector, std::uint64_t descriptor, unsigned type);
/// Sets the accessed bit of a code or data descriptor, in memory and in `s`. False: page fault.
bool mark_accessed(Core &, std::uint16_t selector, std::uint64_t descriptor, Segment &s);
/// The segment register that a descriptor gives, with its hidden part.
Segment unpack(std::uint16_t selector, std::uint64_t descriptor);

/// [offset, offset + size) lies within the segment's limit.
bool within_limit(const Segment &, std::uint64_t offset, unsigned size);
/// Linear address of an offset into a segment, with the checks of the current mode. False: #GP or #SS.
bool segment_address(Core &, Seg, std::uint64_t offset, unsigned size, bool write, Addr &out);

/// Checks SS for privilege level `cpl`, which must be its RPL and DPL, and gives the segment in `out`. False: fault
/// with `vector`, or #SS if the segment is not present.
bool check_stack_segment(Core &, std::uint16_t selector, unsigned cpl, unsigned vector, Segment &out);
/// Stack of an inner privilege level, from the legacy TSS. False: #TS.
bool tss_stack(Core &, unsigned cpl, std::uint16_t &ss, std::uint64_t &sp);
/// RSP from the long-mode TSS: of privilege level `slot` (0 to 2), or IST `slot - 3` (4 to 10 are IST1 to IST7).
bool tss_stack64(Core &, unsigned slot, std::uint64_t &sp);

/// A stack that a far transfer pushes to or pops from. The core's own registers stay as they are until `commit`.
struct FarStack {
    Core &c;
    Segment ss; ///< as it will be
    std::uint64_t sp;
    unsigned width;          ///< bytes of the stack pointer that count: 2, 4 or 8
    bool user;               ///< accesses are those of privilege level 3
    std::uint32_t error = 0; ///< error code of #SS, if the limit is exceeded

    /// The stack that the core is using.
    static FarStack current(Core &);
    bool push(std::uint64_t value, unsigned bytes);
    bool pop(std::uint64_t &value, unsigned bytes);
    /// Writes RSP back as wide as the stack is.
    void commit_pointer() const;

  private:
    std::uint64_t mask() const { return width == 8 ? ~std::uint64_t{0} : width == 4 ? 0xffffffff : 0xffff; }
    bool place(std::uint64_t at, unsigned bytes, Addr &out) const;
};

} // namespace moscope::x86
