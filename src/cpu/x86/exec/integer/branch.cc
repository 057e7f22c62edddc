// SPDX-License-Identifier: BSD-3-Clause
// Near branches: JMP, Jcc, JCXZ and LOOPcc, CALL, RET. Relative targets are kept in Op::imm as offsets from the block's
// first byte. Far forms are passed on to exec/system/control.cc.
#include "cpu/x86/decode/lower.hh"
#include "cpu/x86/decode/lower_far.hh"
#include "cpu/x86/exec/integer/alu.hh"
#include "cpu/x86/exec/integer/stack.hh"
#include "cpu/x86/mmu/paging.hh"

namespace moscope::x86 {
namespace {

/// The bits of the instruction pointer that an operand size leaves.
std::uint64_t ip_mask(unsigned bytes) { return bytes == 8 ? ~std::uint64_t{0} : bytes == 4 ? 0xffffffff : 0xffff; }

/// Goes to `target`, or faults if it lies outside CS (legacy modes) or is not canonical.
const Op *go(Core &c, const Op *op, std::uint64_t target) {
    if (c.code64()) {
        if (__builtin_expect(static_cast<std::int64_t>(target << 16) >> 16 != static_cast<std::int64_t>(target), 0)) {
            c.raise(exc_gp, 0);
            return c.fault_at(op);
        }
    } else if (target > c.seg[cs].limit) {
        c.raise(exc_gp, 0);
        return c.fault_at(op);
    }
    c.rip = target;
    return nullptr;
}

/// Whether go() would succeed; asked before anything is pushed. False: #GP was raised.
bool reachable(Core &c, std::uint64_t target) {
    const bool fine = c.code64() ? static_cast<std::int64_t>(target << 16) >> 16 == static_cast<std::int64_t>(target)
                                 : target <= c.seg[cs].limit;
    return fine || c.raise(exc_gp, 0);
}

/// In 64-bit mode, near branches have targets of 64 bits, or 16 with an operand-size prefix (AMD 24594, appendix B.2;
/// other makers' processors ignore the prefix). True: 64.
bool wide(const Insn &i, Op &op) {
    if (i.mode != Mode::code64)
        return false;
    // The decoder's width is 64 for all but those whose displacement gets shorter.
    const bool cut = (i.z.attributes & ZYDIS_ATTRIB_HAS_OPERANDSIZE) && !i.z.raw.rex.W;
    op.width = cut ? 2 : 8;
    return !cut;
}

/// Fills in the relative target. Returns what wide() does.
bool fill_target(const Insn &i, Op &op) {
    op.imm = static_cast<std::uint64_t>(i.op[0].imm.value.s) + op.start + op.length;
    return wide(i, op);
}

const Op *jump_relative(Core &c, const Op *op) { return go(c, op, (c.r[reg_block] + op->imm) & ip_mask(op->width)); }
// No check is needed: if a relative target leaves the canonical range, the fetch there faults by itself.
const Op *jump_relative64(Core &c, const Op *op) {
    c.rip = c.r[reg_block] + op->imm;
    return nullptr;
}

template <unsigned code> const Op *jump_if(Core &c, const Op *op) {
    if (alu::condition<code>(c.flags))
        return jump_relative(c, op);
    c.rip = c.address_after(op);
    return nullptr;
}
template <unsigned code> const Op *jump_if64(Core &c, const Op *op) {
    c.rip =
        c.r[reg_block] + (alu::condition<code>(c.flags) ? op->imm : static_cast<std::uint64_t>(op->start) + op->length);
    return nullptr;
}
template <unsigned code> Exec lower_jcc(const Insn &i, Op &op) {
    return fill_target(i, op) ? jump_if64<code> : jump_if<code>;
}

bool load_target(Core &c, const Op *op, std::uint64_t &t) {
    if (!op->mem) {
        t = reg<std::uint64_t>(c, op->dst) & ip_mask(op->width);
        return true;
    }
    Addr a;
    if (!address(c, op, op->width, false, a))
        return false;
    return with_size(op->width, [&]<class T>() {
        T x;
        if (!load<T>(c, a, x))
            return false;
        t = x;
        return true;
    });
}

/// Runs kGo with the target that is read from a register or memory.
template <const Op *(*kGo)(Core &, const Op *, std::uint64_t)> const Op *indirect(Core &c, const Op *op) {
    std::uint64_t t;
    return load_target(c, op, t) ? kGo(c, op, t) : c.fault_at(op);
}

template <Lower kFar, Exec kRelative64, Exec kRelative, Exec kIndirect> Exec lower_transfer(const Insn &i, Op &op) {
    if (i.z.meta.branch_type == ZYDIS_BRANCH_TYPE_FAR)
        return kFar(i, op);
    if (i.is_imm(0))
        return fill_target(i, op) ? kRelative64 : kRelative;
    wide(i, op);
    return kIndirect;
}

bool push_ip(Core &c, const Op *op, std::uint64_t ip) {
    return with_size(op->width, [&]<class T>() { return push(c, static_cast<T>(ip)); });
}

const Op *call_to(Core &c, const Op *op, std::uint64_t target) {
    if (!reachable(c, target) || !push_ip(c, op, c.address_after(op)))
        return c.fault_at(op);
    c.rip = target;
    return nullptr;
}
const Op *call_relative(Core &c, const Op *op) {
    return call_to(c, op, (c.r[reg_block] + op->imm) & ip_mask(op->width));
}
const Op *call_relative64(Core &c, const Op *op) {
    const std::uint64_t sp = c.r[rsp] - 8;
    if (!store<std::uint64_t>(c, sp, c.address_after(op)))
        return c.fault_at(op);
    c.r[rsp] = sp;
    c.rip = c.r[reg_block] + op->imm;
    return nullptr;
}

template <class T> struct Ret {
    static const Op *run(Core &c, const Op *op) {
        T t;
        if (!peek_stack(c, t))
            return c.fault_at(op);
        if (!reachable(c, t))
            return c.fault_at(op);
        drop_stack(c, sizeof(T) + (op->imm & 0xffff));
        c.rip = t;
        return nullptr;
    }
};
const Op *ret64(Core &c, const Op *op) {
    std::uint64_t t;
    if (!load(c, c.r[rsp], t) || (!canonical(t) && !reachable(c, t)))
        return c.fault_at(op);
    c.r[rsp] += 8 + (op->imm & 0xffff);
    c.rip = t;
    return nullptr;
}
Exec lower_ret(const Insn &i, Op &op) {
    if (i.z.meta.branch_type == ZYDIS_BRANCH_TYPE_FAR)
        return lower_ret_far(i, op);
    wide(i, op);
    return op.width == 8 ? ret64 : by_size<Ret>(op.width);
}

/// The counter of LOOP and JCXZ has the address size.
std::uint64_t count_mask(const Op *op) { return ip_mask(op->address_bytes); }

const Op *taken_if(Core &c, const Op *op, bool taken) {
    if (taken)
        return jump_relative(c, op);
    c.rip = c.address_after(op);
    return nullptr;
}
const Op *jump_if_count_zero(Core &c, const Op *op) { return taken_if(c, op, !(c.r[rcx] & count_mask(op))); }
// 0 LOOPNE, 1 LOOPE, 2 LOOP
template <unsigned kind> const Op *loop(Core &c, const Op *op) {
    const std::uint64_t m = count_mask(op), n = (c.r[rcx] - 1) & m;
    const bool taken = n && (kind == 2 || c.flags.z() == (kind == 1));
    const std::uint64_t before = c.r[rcx];
    c.r[rcx] = op->address_bytes == 2 ? (c.r[rcx] & ~m) | n : n;
    const Op *next = taken_if(c, op, taken);
    if (c.exit == Exit::fault)
        c.r[rcx] = before;
    return next;
}
template <Exec run> Exec lower_counted(const Insn &i, Op &op) {
    fill_target(i, op);
    return run;
}

const Form kForms[] = {
    {ZYDIS_MNEMONIC_JMP, lower_transfer<lower_jmp_far, jump_relative64, jump_relative, indirect<go>>, true},
    {ZYDIS_MNEMONIC_CALL, lower_transfer<lower_call_far, call_relative64, call_relative, indirect<call_to>>, true},
    {ZYDIS_MNEMONIC_RET, lower_ret, true},
    {{ZYDIS_MNEMONIC_JCXZ, ZYDIS_MNEMONIC_JECXZ, ZYDIS_MNEMONIC_JRCXZ}, lower_counted<jump_if_count_zero>, true},
    {ZYDIS_MNEMONIC_LOOPNE, lower_counted<loop<0>>, true},
    {ZYDIS_MNEMONIC_LOOPE, lower_counted<loop<1>>, true},
    {ZYDIS_MNEMONIC_LOOP, lower_counted<loop<2>>, true},
};
const Group kGroup("near branches", kForms);
const std::vector<Form> kConditional = by_condition(
    {ZYDIS_MNEMONIC_JO, ZYDIS_MNEMONIC_JNO, ZYDIS_MNEMONIC_JB, ZYDIS_MNEMONIC_JNB, ZYDIS_MNEMONIC_JZ,
     ZYDIS_MNEMONIC_JNZ, ZYDIS_MNEMONIC_JBE, ZYDIS_MNEMONIC_JNBE, ZYDIS_MNEMONIC_JS, ZYDIS_MNEMONIC_JNS,
     ZYDIS_MNEMONIC_JP, ZYDIS_MNEMONIC_JNP, ZYDIS_MNEMONIC_JL, ZYDIS_MNEMONIC_JNL, ZYDIS_MNEMONIC_JLE,
     ZYDIS_MNEMONIC_JNLE},
    []<unsigned code>() { return lower_jcc<code>; }, true);
const Group kConditionalGroup("near branches", kConditional);

} // namespace
} // namespace moscope::x86
