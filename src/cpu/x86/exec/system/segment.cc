// SPDX-License-Identifier: BSD-3-Clause
// Segment registers: MOV, PUSH and POP of them, LDS and its siblings, and the instructions that ask what a
// selector would allow (AMD 24594, chapters 3 and 4).
#include <algorithm>

#include "cpu/x86/decode/lower.hh"
#include "cpu/x86/decode/lower_mov.hh"
#include "cpu/x86/decode/lower_stack.hh"
#include "cpu/x86/decode/operands.hh"
#include "cpu/x86/exec/integer/stack.hh"
#include "cpu/x86/system/far.hh"
#include "cpu/x86/system/segment.hh"

namespace moscope::x86 {
namespace {

/// After MOV SS and POP SS the next instruction runs before any interrupt.
const Op *after_load(Core &c, const Op *op, unsigned which) {
    if (which != ss)
        return op + 1;
    c.shadow = State::kShadowDebug;
    return c.leave_after(op, Exit::restart);
}

template <bool kMemory> const Op *move_to_segment(Core &c, const Op *op) {
    std::uint16_t selector;
    if (!read_operand<std::uint16_t, kMemory>(c, op, op->src, selector) ||
        !load_segment(c, static_cast<Seg>(op->dst), selector))
        return c.fault_at(op);
    return after_load(c, op, op->dst);
}

const Op *move_from_segment(Core &c, const Op *op) {
    const std::uint16_t selector = c.seg[op->src].selector;
    if (op->mem) {
        Addr a;
        if (!address(c, op, 2, true, a) || !store(c, a, selector))
            return c.fault_at(op);
    } else if (op->width == 2)
        set_reg<std::uint16_t>(c, op->dst, selector);
    else
        c.r[op->dst / 8] = selector;
    return op + 1;
}

template <class T> struct PushSegment {
    static const Op *run(Core &c, const Op *op) {
        return push<T>(c, c.seg[op->dst].selector) ? op + 1 : c.fault_at(op);
    }
};
template <class T> struct PopSegment {
    static const Op *run(Core &c, const Op *op) {
        T x;
        // The stack that is popped from is the one before the load.
        const FarStack before = FarStack::current(c);
        if (!peek_stack(c, x) || !load_segment(c, static_cast<Seg>(op->dst), static_cast<std::uint16_t>(x)))
            return c.fault_at(op);
        FarStack st = before;
        st.sp += sizeof(T);
        st.commit_pointer();
        return after_load(c, op, op->dst);
    }
};

/// LDS, LES, LFS, LGS, LSS: load a register and a segment register from a far pointer.
template <Seg which, class T> const Op *load_far_pointer(Core &c, const Op *op) {
    T offset;
    std::uint16_t selector;
    if (!load_part(c, op, 0, offset) || !load_part(c, op, sizeof(T), selector) || !load_segment(c, which, selector))
        return c.fault_at(op);
    set_reg<T>(c, op->dst, offset);
    return which == ss ? c.leave_after(op, Exit::restart) : op + 1;
}
/// The family has no 80-bit far pointers: the operand size 64 loads 32 bits.
template <Seg which> Exec lower_far_pointer(const Insn &, Op &op) {
    return op.width == 2 ? load_far_pointer<which, std::uint16_t> : load_far_pointer<which, std::uint32_t>;
}

// --- LAR, LSL, VERR, VERW, ARPL

struct Question {
    std::uint16_t selector = 0;
    std::uint64_t descriptor = 0;
    Segment s;
    bool found = false;
};

/// The selector operand (in memory or register `r`) and its descriptor. Null: go on; else: the fault.
const Op *ask(Core &c, const Op *op, unsigned r, Question &q) {
    if (c.real_mode())
        return undefined(c, op);
    if (op->mem ? !read_operand<std::uint16_t, true>(c, op, r, q.selector)
                : !read_operand<std::uint16_t, false>(c, op, r, q.selector))
        return c.fault_at(op);
    bool faulted;
    q.found = peek_descriptor(c, q.selector, q.descriptor, faulted);
    if (faulted)
        return c.fault_at(op);
    if (q.found)
        q.s = unpack(q.selector, q.descriptor);
    return nullptr;
}
bool failed(const Core &c) { return c.exit == Exit::fault; }

/// Privilege as LAR and LSL want it: conforming code is visible at every level.
bool visible(const Core &c, const Question &q) {
    return (q.s.code() && (q.s.attr & 4)) || q.s.dpl() >= std::max(c.cpl, rpl(q.selector));
}

constexpr unsigned bit(unsigned type) { return 1u << type; }
constexpr unsigned kLimit64 = bit(sys_ldt) | bit(sys_tss) | bit(sys_tss_busy);
constexpr unsigned kLimit32 = kLimit64 | bit(sys_tss16) | bit(sys_tss16_busy);
constexpr unsigned kRights64 = kLimit64 | bit(sys_call);
constexpr unsigned kRights32 = kLimit32 | bit(sys_call) | bit(sys_call16) | bit(sys_task_gate);

const Op *answer(Core &c, const Op *op, bool yes) {
    write_flags(c, yes ? Flags::zf : 0, Flags::zf);
    return op + 1;
}

template <bool rights> const Op *load_what(Core &c, const Op *op) {
    Question q;
    ask(c, op, op->src, q);
    if (failed(c))
        return nullptr;
    const unsigned types = rights ? (c.long_mode() ? kRights64 : kRights32) : (c.long_mode() ? kLimit64 : kLimit32);
    const bool kind = (q.s.attr & Segment::kCodeOrData) || (types >> q.s.type() & 1);
    if (!q.found || !kind || !visible(c, q))
        return answer(c, op, false);
    const std::uint64_t x = rights ? q.descriptor >> 32 & 0xffff00 : q.s.limit; // AMD's LAR shows limit bits 19:16
    if (op->width == 2)
        set_reg<std::uint16_t>(c, op->dst, static_cast<std::uint16_t>(x));
    else
        c.r[op->dst / 8] = x;
    return answer(c, op, true);
}

template <bool write> const Op *verify(Core &c, const Op *op) {
    Question q;
    ask(c, op, op->dst, q);
    if (failed(c))
        return nullptr;
    const bool fit = write ? !q.s.code() && (q.s.attr & 2) : !q.s.code() || (q.s.attr & 2);
    return answer(c, op, q.found && (q.s.attr & Segment::kCodeOrData) && fit && visible(c, q));
}

const Op *adjust_rpl(Core &c, const Op *op) {
    if (c.real_mode())
        return undefined(c, op);
    const std::uint16_t from = reg<std::uint16_t>(c, op->src);
    bool raised = false;
    const auto f = [&](std::uint16_t x) {
        raised = rpl(x) < rpl(from);
        return raised ? static_cast<std::uint16_t>((x & 0xfffc) | rpl(from)) : x;
    };
    const Op *next = op->mem ? change<std::uint16_t, true>(c, op, f) : change<std::uint16_t, false>(c, op, f);
    return next ? answer(c, op, raised) : nullptr;
}

const Form kForms[] = {
    {ZYDIS_MNEMONIC_LDS, lower_far_pointer<ds>}, {ZYDIS_MNEMONIC_LES, lower_far_pointer<es>},
    {ZYDIS_MNEMONIC_LFS, lower_far_pointer<fs>}, {ZYDIS_MNEMONIC_LGS, lower_far_pointer<gs>},
    {ZYDIS_MNEMONIC_LSS, lower_far_pointer<ss>}, {ZYDIS_MNEMONIC_LAR, load_what<true>},
    {ZYDIS_MNEMONIC_LSL, load_what<false>},      {ZYDIS_MNEMONIC_VERR, verify<false>},
    {ZYDIS_MNEMONIC_VERW, verify<true>},         {ZYDIS_MNEMONIC_ARPL, adjust_rpl},
};
const Group kGroup("segments", kForms);

} // namespace

Exec lower_mov_segment(const Insn &i, Op &op) {
    const bool to_segment = i.is_reg(0) && ZydisRegisterGetClass(i.reg(0)) == ZYDIS_REGCLASS_SEGMENT;
    if (!to_segment)
        return move_from_segment;
    if (op.dst == cs)
        return undefined;
    return i.is_mem(1) ? move_to_segment<true> : move_to_segment<false>;
}
Exec lower_push_segment(const Insn &, Op &op) { return by_size<PushSegment>(op.width); }
Exec lower_pop_segment(const Insn &, Op &op) { return by_size<PopSegment>(op.width); }

} // namespace moscope::x86
