// SPDX-License-Identifier: BSD-3-Clause
// Control and debug registers, descriptor-table registers, INVLPG and cache control (AMD 24594, chapter 4).
#include "cpu/x86/decode/lower.hh"
#include "cpu/x86/decode/lower_mov.hh"
#include "cpu/x86/mmu/data_port.hh"
#include "cpu/x86/mmu/memory.hh"
#include "cpu/x86/mmu/paging.hh"
#include "cpu/x86/system/control.hh"
#include "cpu/x86/system/segment.hh"

namespace moscope::x86 {
namespace {

/// After an instruction whose form does not end its block: the next instruction is looked up again, because modes,
/// translations or breakpoints have changed.
const Op *start_anew(Core &c, const Op *op) { return c.leave_after(op, Exit::restart); }

// --- MOV CRn, DRn: the general register is as wide as the mode

std::uint64_t general(const Core &c, unsigned offset) {
    const std::uint64_t v = c.r[offset / 8];
    return c.code64() ? v : v & 0xffffffff;
}
void set_general(Core &c, unsigned offset, std::uint64_t v) { c.r[offset / 8] = c.code64() ? v : v & 0xffffffff; }

const Op *read_control(Core &c, const Op *op) {
    if (!privileged(c))
        return c.fault_at(op);
    std::uint64_t v;
    switch (op->src) {
    case 0: v = c.cr0; break;
    case 2: v = c.cr2; break;
    case 3: v = c.cr3; break;
    case 4: v = c.cr4; break;
    case 8: v = c.interrupts ? c.interrupts->cr8() : 0; break;
    default: return undefined(c, op);
    }
    set_general(c, op->dst, v);
    return op + 1;
}

const Op *write_control(Core &c, const Op *op) {
    if (!privileged(c))
        return c.fault_at(op);
    const std::uint64_t v = general(c, op->src);
    bool done = true;
    switch (op->dst) {
    case 0: done = write_cr0(c, v); break;
    case 2: c.cr2 = v; break;
    case 3: done = write_cr3(c, v); break;
    case 4: done = write_cr4(c, v); break;
    case 8:
        if (v > 15)
            done = c.raise(exc_gp, 0);
        else if (c.interrupts)
            c.interrupts->set_cr8(static_cast<std::uint8_t>(v));
        break;
    default: return undefined(c, op);
    }
    return done ? start_anew(c, op) : c.fault_at(op);
}

/// DR4 and DR5 are DR6 and DR7, unless CR4.DE takes them away. False: fault.
bool debug_index(Core &c, unsigned &n) {
    if ((n == 4 || n == 5) && (c.cr4 & cr4::de))
        return c.raise(exc_ud);
    if (n == 4 || n == 5)
        n += 2;
    if (!privileged(c))
        return false;
    if (c.dr[7] >> 13 & 1) { // general detect
        c.dr[6] |= 1 << 13;
        return c.raise(exc_db);
    }
    return true;
}

const Op *read_debug(Core &c, const Op *op) {
    unsigned n = op->src;
    if (!debug_index(c, n))
        return c.fault_at(op);
    set_general(c, op->dst, c.dr[n]);
    return op + 1;
}
const Op *write_debug(Core &c, const Op *op) {
    unsigned n = op->dst;
    if (!debug_index(c, n))
        return c.fault_at(op);
    std::uint64_t v = general(c, op->src);
    if (n >= 6 && v >> 32)
        return protection(c, op);
    if (n == 6)
        v = (v & 0xe00f) | 0xffff0ff0;
    if (n == 7)
        v = (v & 0xffff23ff) | 0x400; // bits 15:14 and 12:11 are zeros, bit 10 is one
    c.dr[n] = v;
    c.debug_changed();
    return start_anew(c, op);
}

const Op *clear_task_switched(Core &c, const Op *op) {
    if (!privileged(c))
        return c.fault_at(op);
    c.cr0 &= ~cr0::ts;
    return op + 1;
}

// --- LMSW, SMSW and selectors: a register takes the whole operand size, memory two bytes

bool read_word(Core &c, const Op *op, std::uint16_t &x) {
    if (!op->mem) {
        x = reg<std::uint16_t>(c, op->dst);
        return true;
    }
    Addr a;
    return address(c, op, 2, false, a) && load(c, a, x);
}
const Op *write_word(Core &c, const Op *op, std::uint64_t x) {
    if (op->mem) {
        Addr a;
        if (!address(c, op, 2, true, a) || !store(c, a, static_cast<std::uint16_t>(x)))
            return c.fault_at(op);
        return op + 1;
    }
    if (op->width == 2)
        set_reg<std::uint16_t>(c, op->dst, static_cast<std::uint16_t>(x));
    else
        c.r[op->dst / 8] = op->width == 4 ? x & 0xffffffff : x;
    return op + 1;
}

const Op *load_machine_status(Core &c, const Op *op) {
    std::uint16_t x;
    if (!privileged(c) || !read_word(c, op, x))
        return c.fault_at(op);
    // PE can be set here but not cleared.
    const std::uint64_t keep = c.cr0 & (~std::uint64_t{15} | cr0::pe);
    return write_cr0(c, keep | (x & 15)) ? op + 1 : c.fault_at(op);
}
const Op *store_machine_status(Core &c, const Op *op) { return write_word(c, op, c.cr0); }

// --- descriptor-table registers

template <TableRegister State::*table> const Op *load_table(Core &c, const Op *op) {
    Addr a;
    std::uint16_t limit;
    std::uint64_t base = 0;
    const unsigned bytes = c.code64() ? 8 : 4;
    if (!privileged(c) || !load_part(c, op, 0, limit) || !address(c, op, bytes, false, a, 2) ||
        !load_slow(c, a, &base, bytes))
        return c.fault_at(op);
    if (bytes == 8 && !canonical(base))
        return protection(c, op);
    if (op->width == 2)
        base &= 0xffffff;
    c.*table = {base, limit};
    return op + 1;
}
template <TableRegister State::*table> const Op *store_table(Core &c, const Op *op) {
    Addr a;
    const unsigned bytes = c.code64() ? 8 : 4;
    const TableRegister &t = c.*table;
    // The first part is tried, then written last: a fault leaves nothing half done.
    if (!try_part<std::uint16_t>(c, op, 0) || !address(c, op, bytes, true, a, 2) || !store_slow(c, a, &t.base, bytes) ||
        !store_part(c, op, 0, t.limit))
        return c.fault_at(op);
    return op + 1;
}

/// A system segment for LDTR or TR. False: fault.
bool system_segment(Core &c, std::uint16_t selector, bool ldt, Segment &s) {
    std::uint64_t d, high = 0;
    if (selector & 4)
        return c.raise(exc_gp, selector_error(selector));
    if (!read_descriptor(c, selector, d, exc_gp))
        return false;
    s = unpack(selector, d);
    const bool right = ldt ? s.type() == sys_ldt : s.type() == sys_tss || (s.type() == sys_tss16 && !c.long_mode());
    if ((s.attr & Segment::kCodeOrData) || !right)
        return c.raise(exc_gp, selector_error(selector));
    if (!s.present())
        return c.raise(exc_np, selector_error(selector));
    if (c.long_mode()) {
        if (!read_descriptor_high(c, selector, high, exc_gp))
            return false;
        s.base |= high << 32;
        if (!canonical(s.base) || (high >> 40 & 31))
            return c.raise(exc_gp, selector_error(selector));
    }
    if (ldt)
        return true;
    s.attr |= 2; // busy
    return change_descriptor_type(c, selector, d, s.type());
}

template <Segment State::*which, bool ldt> const Op *load_system_register(Core &c, const Op *op) {
    std::uint16_t selector;
    if (c.real_mode())
        return undefined(c, op);
    if (!privileged(c) || !read_word(c, op, selector))
        return c.fault_at(op);
    Segment s;
    if (!null_selector(selector)) {
        if (!system_segment(c, selector, ldt, s))
            return c.fault_at(op);
    } else if (ldt) { // a null selector: no LDT
        s.selector = selector;
        s.attr = 0;
    } else
        return protection(c, op);
    c.*which = s;
    return op + 1;
}
template <Segment State::*which> const Op *store_selector(Core &c, const Op *op) {
    return c.real_mode() ? undefined(c, op) : write_word(c, op, (c.*which).selector);
}

// --- translations and caches

const Op *invalidate_page(Core &c, const Op *op) {
    if (!privileged(c))
        return c.fault_at(op);
    const std::uint64_t offset = effective_offset(c, op);
    Addr a = offset + c.seg[op->seg].base;
    if (c.code64())
        a = offset + (op->seg == fs || op->seg == gs ? c.seg[op->seg].base : 0);
    else
        a &= 0xffffffff;
    c.flush_page(a);
    return op + 1;
}
const Op *write_back_caches(Core &c, const Op *op) { return privileged(c) ? op + 1 : c.fault_at(op); }

const Op *flush_line(Core &c, const Op *op) {
    Addr a;
    PhysAddr at;
    if (!address(c, op, 1, false, a) || !translate(c, a, Kind::read, c.cpl == 3, at))
        return c.fault_at(op);
    with_data_port(c, [&](auto port) {
        port.at_linear(a);
        port.flush(at);
    });
    return op + 1;
}
const Op *hint(Core &, const Op *op) { return op + 1; }
/// It never faults. Outside of 64-bit mode it requests nothing.
template <bool kWrite> const Op *prefetch(Core &c, const Op *op) {
    if (Addr a; c.code64() && address(c, op, 1, false, a))
        with_data_port(c, [&](auto port) { port.prefetch(a, kWrite, c.cpl == 3); });
    return op + 1;
}
const Op *fence(Core &c, const Op *op) {
    serialize(c);
    return op + 1;
}
const Op *fence_of_stores(Core &c, const Op *op) {
    store_fence(c);
    return op + 1;
}

const Form kForms[] = {
    {ZYDIS_MNEMONIC_CLTS, clear_task_switched, true},
    {ZYDIS_MNEMONIC_LMSW, load_machine_status, true},
    {ZYDIS_MNEMONIC_SMSW, store_machine_status},
    {ZYDIS_MNEMONIC_LGDT, serializing<load_table<&State::gdtr>>},
    {ZYDIS_MNEMONIC_LIDT, serializing<load_table<&State::idtr>>},
    {ZYDIS_MNEMONIC_SGDT, store_table<&State::gdtr>},
    {ZYDIS_MNEMONIC_SIDT, store_table<&State::idtr>},
    {ZYDIS_MNEMONIC_LLDT, serializing<load_system_register<&State::ldtr, true>>},
    {ZYDIS_MNEMONIC_LTR, serializing<load_system_register<&State::tr, false>>},
    {ZYDIS_MNEMONIC_SLDT, store_selector<&State::ldtr>},
    {ZYDIS_MNEMONIC_STR, store_selector<&State::tr>},
    {ZYDIS_MNEMONIC_INVLPG, serializing<invalidate_page>, true},
    {{ZYDIS_MNEMONIC_INVD, ZYDIS_MNEMONIC_WBINVD}, serializing<write_back_caches>, true},
    {ZYDIS_MNEMONIC_CLFLUSH, flush_line},
    {ZYDIS_MNEMONIC_LFENCE, hint},
    // PREFETCHWT1 is a reserved hint of PREFETCH on this family.
    {{ZYDIS_MNEMONIC_PREFETCH, ZYDIS_MNEMONIC_PREFETCHWT1, ZYDIS_MNEMONIC_PREFETCHNTA, ZYDIS_MNEMONIC_PREFETCHT0,
      ZYDIS_MNEMONIC_PREFETCHT1, ZYDIS_MNEMONIC_PREFETCHT2},
     prefetch<false>},
    {ZYDIS_MNEMONIC_PREFETCHW, prefetch<true>},
    {ZYDIS_MNEMONIC_SFENCE, fence_of_stores},
    {ZYDIS_MNEMONIC_MFENCE, fence},
};
const Group kGroup("system registers and caches", kForms);

} // namespace

Exec lower_mov_control(const Insn &i, Op &) {
    const bool write = ZydisRegisterGetClass(i.reg(0)) != ZYDIS_REGCLASS_GPR64 &&
                       ZydisRegisterGetClass(i.reg(0)) != ZYDIS_REGCLASS_GPR32;
    const bool debug = ZydisRegisterGetClass(i.reg(write ? 0 : 1)) == ZYDIS_REGCLASS_DEBUG;
    if (debug)
        return write ? serializing<write_debug> : read_debug;
    return write ? serializing<write_control> : read_control;
}

} // namespace moscope::x86
