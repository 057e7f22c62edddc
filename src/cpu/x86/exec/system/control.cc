// SPDX-License-Identifier: BSD-3-Clause
// Far JMP, CALL and RET, IRET, software interrupts, BOUND, SYSCALL and SYSENTER with their returns, and the opcodes
// that are undefined by definition (AMD 24594, chapters 3 and 4).
#include "cpu/x86/system/control.hh"
#include "cpu/x86/decode/lower_far.hh"
#include "cpu/x86/mmu/memory.hh"
#include "cpu/x86/system/far.hh"
#include "cpu/x86/system/interrupts.hh"
#include "cpu/x86/system/segment.hh"

namespace moscope::x86 {
namespace {

std::uint64_t next_ip(const Core &c, const Op *op) {
    const std::uint64_t next = c.address_after(op);
    return c.code64() ? next : next & 0xffffffff;
}

// --- far branches. A 64-bit operand size does not widen the pointer in memory on this family.

bool far_pointer(Core &c, const Op *op, std::uint64_t &offset, std::uint16_t &selector) {
    if (!op->mem) {
        offset = op->imm;
        selector = static_cast<std::uint16_t>(op->disp);
        return true;
    }
    const unsigned bytes = op->width == 2 ? 2 : 4;
    Addr a;
    offset = 0;
    return address(c, op, bytes, false, a) && load_slow(c, a, &offset, bytes) && load_part(c, op, bytes, selector);
}

/// kTransfer: far_jump or far_call.
template <auto kTransfer> const Op *transfer_far(Core &c, const Op *op) {
    std::uint64_t offset;
    std::uint16_t selector;
    return far_pointer(c, op, offset, selector) && kTransfer(c, selector, offset, op->width, next_ip(c, op))
               ? nullptr
               : c.fault_at(op);
}
template <auto kTransfer> Exec lower_far(const Insn &i, Op &op) {
    if (i.op[0].type == ZYDIS_OPERAND_TYPE_POINTER) {
        op.imm = i.op[0].ptr.offset;
        op.disp = i.op[0].ptr.segment;
    }
    return transfer_far<kTransfer>;
}
const Op *return_far(Core &c, const Op *op) {
    return far_return(c, op->width, op->imm & 0xffff) ? nullptr : c.fault_at(op);
}

// --- interrupts by instruction

const Op *enter_by_instruction(Core &c, const Op *op, unsigned vector, Source source) {
    c.rip = next_ip(c, op);
    if (!enter_handler(c, vector, source, false, 0))
        return c.fault_at(op);
    if (c.exit == Exit::shutdown) // by a fault of the task that was entered
        return nullptr;
    c.exit = Exit::trap;
    c.left_at = op + 1;
    return nullptr;
}

/// Virtual-8086 mode with its extensions: does the TSS send this INT to the program's own vector table? False: fault.
bool redirected(Core &c, unsigned vector, bool &own) {
    std::uint16_t map;
    std::uint8_t bits;
    if (c.tr.limit < 0x67)
        return c.raise(exc_gp, 0);
    if (!load_system(c, c.tr.base + 0x66, map))
        return false;
    const unsigned at = map - 32u + vector / 8;
    if (map < 32 || at > c.tr.limit)
        return c.raise(exc_gp, 0);
    if (!load_system(c, c.tr.base + at, bits))
        return false;
    own = !(bits >> (vector & 7) & 1);
    return true;
}

/// INT of virtual-8086 mode through the vector table at linear address 0.
bool enter_own_handler(Core &c, unsigned vector, std::uint64_t next) {
    const bool virtual_if = (c.flags.system & Flags::iopl) != Flags::iopl;
    std::uint64_t image = c.flags.value();
    if (virtual_if)
        image = (image & ~Flags::if_) | Flags::iopl | ((image & Flags::vif) ? Flags::if_ : 0);
    std::uint16_t ip, code;
    if (!load(c, vector * 4, ip) || !load(c, vector * 4 + 2, code))
        return false;
    FarStack st = FarStack::current(c);
    if (!st.push(image, 2) || !st.push(c.seg[cs].selector, 2) || !st.push(next, 2))
        return false;
    st.commit_pointer();
    load_real_segment(c, cs, code);
    c.rip = ip;
    c.flags.system &= ~(Flags::tf | Flags::nt | (virtual_if ? Flags::vif : Flags::if_));
    return true;
}

const Op *interrupt(Core &c, const Op *op) {
    const auto vector = static_cast<unsigned>(op->imm & 0xff);
    if (c.virtual_8086()) {
        bool own = false;
        if ((c.cr4 & cr4::vme) && !redirected(c, vector, own))
            return c.fault_at(op);
        if (own)
            return enter_own_handler(c, vector, next_ip(c, op)) ? nullptr : c.fault_at(op);
        if ((c.flags.system & Flags::iopl) != Flags::iopl)
            return protection(c, op);
    }
    return enter_by_instruction(c, op, vector, Source::software);
}
const Op *breakpoint(Core &c, const Op *op) { return enter_by_instruction(c, op, exc_bp, Source::software); }
const Op *debug_trap(Core &c, const Op *op) { return enter_by_instruction(c, op, exc_db, Source::exception); }
const Op *overflow(Core &c, const Op *op) {
    return c.flags.o() ? enter_by_instruction(c, op, exc_of, Source::software) : op + 1;
}

const Op *return_from_interrupt(Core &c, const Op *op) {
    return interrupt_return(c, op->width, next_ip(c, op)) ? nullptr : c.fault_at(op);
}

template <class T> struct Bound {
    static const Op *run(Core &c, const Op *op) {
        T low, high;
        if (!load_part(c, op, 0, low) || !load_part(c, op, sizeof(T), high))
            return c.fault_at(op);
        const T index = reg<T>(c, op->dst);
        if (index >= low && index <= high)
            return op + 1;
        c.raise(exc_br);
        return c.fault_at(op);
    }
};

// --- SYSCALL, SYSENTER

constexpr std::uint16_t kCode64 = 0xa09b, kCode32 = 0xc09b, kData = 0xc093;
constexpr std::uint16_t kUser = 0x60; ///< DPL 3

void set_flat_code(Core &c, std::uint64_t selector, std::uint16_t attr, unsigned cpl) {
    set_code_segment(c,
                     {0, 0xffffffff, static_cast<std::uint16_t>(selector),
                      static_cast<std::uint16_t>(attr | (cpl == 3 ? kUser : 0))},
                     cpl);
}
void set_flat_stack(Core &c, std::uint64_t selector, unsigned cpl) {
    c.seg[ss] = {0, 0xffffffff, static_cast<std::uint16_t>((selector & 0xfffc) | cpl),
                 static_cast<std::uint16_t>(kData | (cpl == 3 ? kUser : 0))};
}

/// The end of SYSCALL and SYSRET. Unlike other instructions, they are single-stepped if TF is set after them. So a
/// handler runs without traps if SFMASK clears TF, and the step ends when the handler returns.
const Op *end_of_system_call(Core &c, const Op *op, bool was_stepped) {
    if (__builtin_expect(was_stepped || (c.flags.system & Flags::tf), 0)) {
        c.exit = Exit::traced;
        c.left_at = op + 1;
    }
    return nullptr;
}

const Op *system_call(Core &c, const Op *op) {
    if (!(c.efer & efer::sce) || !c.protected_mode())
        return undefined(c, op);
    const std::uint64_t next = next_ip(c, op), flags = c.flags.value() & ~Flags::rf;
    const std::uint64_t selector = c.star >> 32 & 0xfffc;
    c.r[rcx] = next;
    if (c.long_mode()) {
        if (c.code64())
            c.platform.system_called(c);
        c.rip = c.code64() ? c.lstar : c.cstar;
        c.r[r11] = flags;
        write_flags(c, 0, c.sfmask | Flags::rf);
        set_flat_code(c, selector, kCode64, 0);
    } else {
        c.rip = c.star & 0xffffffff;
        c.flags.system &= ~(Flags::if_ | Flags::rf | Flags::vm);
        set_flat_code(c, selector, kCode32, 0);
    }
    set_flat_stack(c, selector + 8, 0);
    return end_of_system_call(c, op, flags & Flags::tf);
}

const Op *system_return(Core &c, const Op *op) {
    if (!(c.efer & efer::sce))
        return undefined(c, op);
    if (!c.protected_mode() || c.cpl != 0)
        return protection(c, op);
    const std::uint64_t selector = c.star >> 48;
    const bool to64 = c.code64() && op->width == 8;
    const std::uint64_t target = to64 ? c.r[rcx] : c.r[rcx] & 0xffffffff;
    const bool was_stepped = c.flags.system & Flags::tf;
    if (c.long_mode())
        write_flags(c, c.r[r11], 0x3f7fd5 & ~(Flags::rf | Flags::vm));
    else
        c.flags.system |= Flags::if_;
    set_flat_code(c, to64 ? selector + 16 : selector, to64 ? kCode64 : kCode32, 3);
    // On this family, only the selector of SS changes.
    c.seg[ss].selector = static_cast<std::uint16_t>(((selector + 8) & 0xfffc) | 3);
    c.rip = target;
    return end_of_system_call(c, op, was_stepped);
}

const Op *system_enter(Core &c, const Op *op) {
    if (c.long_mode())
        return undefined(c, op);
    if (!c.protected_mode() || null_selector(static_cast<std::uint16_t>(c.sysenter_cs)))
        return protection(c, op);
    c.flags.system &= ~(Flags::if_ | Flags::rf | Flags::vm);
    set_flat_code(c, c.sysenter_cs, kCode32, 0);
    set_flat_stack(c, c.sysenter_cs + 8, 0);
    c.r[rsp] = c.sysenter_esp & 0xffffffff;
    c.rip = c.sysenter_eip & 0xffffffff;
    return nullptr;
}
const Op *system_exit(Core &c, const Op *op) {
    if (!privileged(c)) // before the mode, unlike SYSENTER
        return c.fault_at(op);
    if (c.long_mode())
        return undefined(c, op);
    if (!c.protected_mode() || null_selector(static_cast<std::uint16_t>(c.sysenter_cs)))
        return protection(c, op);
    set_flat_code(c, c.sysenter_cs + 16, kCode32, 3);
    set_flat_stack(c, c.sysenter_cs + 24, 3);
    c.r[rsp] = c.r[rcx] & 0xffffffff;
    c.rip = c.r[rdx] & 0xffffffff;
    return nullptr;
}

Exec lower_bound(const Insn &, Op &op) { return op.width == 2 ? Bound<std::int16_t>::run : Bound<std::int32_t>::run; }

const Form kForms[] = {
    {ZYDIS_MNEMONIC_INT, interrupt, true},
    {ZYDIS_MNEMONIC_INT3, breakpoint, true},
    {ZYDIS_MNEMONIC_INT1, debug_trap, true},
    {ZYDIS_MNEMONIC_INTO, overflow, true},
    {{ZYDIS_MNEMONIC_IRET, ZYDIS_MNEMONIC_IRETD, ZYDIS_MNEMONIC_IRETQ}, serializing<return_from_interrupt>, true},
    {ZYDIS_MNEMONIC_BOUND, lower_bound},
    {ZYDIS_MNEMONIC_SYSCALL, system_call, true},
    {ZYDIS_MNEMONIC_SYSRET, system_return, true},
    {ZYDIS_MNEMONIC_SYSENTER, system_enter, true},
    {ZYDIS_MNEMONIC_SYSEXIT, system_exit, true},
    {{ZYDIS_MNEMONIC_UD0, ZYDIS_MNEMONIC_UD1, ZYDIS_MNEMONIC_UD2}, undefined, true},
    {ZYDIS_MNEMONIC_RSM, undefined, true}, // the model has no system-management mode
};
const Group kGroup("control transfers", kForms);

} // namespace

Exec lower_jmp_far(const Insn &i, Op &op) { return lower_far<far_jump>(i, op); }
Exec lower_call_far(const Insn &i, Op &op) { return lower_far<far_call>(i, op); }
Exec lower_ret_far(const Insn &, Op &) { return return_far; }

} // namespace moscope::x86
