// SPDX-License-Identifier: BSD-3-Clause
// x87 control: control and status word, environment and whole-state saves in their 16- and 32-bit, real and protected
// formats (AMD 24593 section 11.4, 26569), initialization, waiting. None of these instructions is recorded as the last
// one.
#include "cpu/x86/decode/lower.hh"
#include "cpu/x86/exec/x87/x87.hh"
#include "cpu/x86/mmu/memory.hh"

namespace moscope::x86 {

using namespace x87;

namespace {

constexpr std::uint16_t kAllMasked = 0x3f;
constexpr unsigned kRegisterBytes = 80;

void initialize(X87 &f) {
    f.control = 0x037f;
    f.status = 0;
    f.valid = 0;
    f.opcode = 0;
    f.instruction = f.operand = 0;
    f.instruction_cs = f.operand_ds = 0;
}

/// Full tag word: two bits per physical register, 0 valid, 1 zero, 2 special, 3 empty.
std::uint16_t tag_word(const X87 &f) {
    unsigned tags = 0;
    for (unsigned i = 0; i < 8; ++i) {
        const X87::Reg &r = f.st[i];
        const unsigned exponent = r.sign_exponent & 0x7fff;
        const bool integer = r.significand >> 63;
        unsigned tag = exponent == 0x7fff || !integer ? 2 : 0;
        if (!exponent)
            tag = r.significand ? 2 : 1;
        tags |= (f.valid >> i & 1 ? tag : 3u) << 2 * i;
    }
    return static_cast<std::uint16_t>(tags);
}
std::uint8_t valid_from(std::uint16_t tags) {
    unsigned valid = 0;
    for (unsigned i = 0; i < 8; ++i)
        valid |= ((tags >> 2 * i & 3) != 3) << i;
    return static_cast<std::uint8_t>(valid);
}

/// The environment as seven fields of 2 or 4 bytes.
struct Environment {
    std::uint32_t field[7];

    static constexpr std::uint32_t kUpper = 0xffff0000; ///< of fields that only use their lower half
    Environment() = default;
    Environment(const Core &c, bool wide) {
        const X87 &f = c.fpu;
        const auto ip = static_cast<std::uint32_t>(f.instruction), dp = static_cast<std::uint32_t>(f.operand);
        field[0] = kUpper | f.control;
        field[1] = kUpper | f.status;
        field[2] = kUpper | tag_word(f);
        if (c.real_mode()) {
            const std::uint32_t i = ip + 16u * f.instruction_cs, d = dp + 16u * f.operand_ds;
            field[3] = kUpper | (i & 0xffff);
            field[4] = (i >> 16) << 12 | (f.opcode & 0x7ff);
            field[5] = kUpper | (d & 0xffff);
            field[6] = (d >> 16) << 12;
        } else {
            field[3] = ip;
            field[4] = f.instruction_cs | std::uint32_t{f.opcode & 0x7ffu} << 16;
            field[5] = dp;
            field[6] = kUpper | f.operand_ds;
        }
        if (!wide)
            for (std::uint32_t &x : field)
                x &= 0xffff;
    }

    void load_into(Core &c, bool wide) const {
        X87 &f = c.fpu;
        f.valid = valid_from(static_cast<std::uint16_t>(field[2]));
        f.status = static_cast<std::uint16_t>(field[1]);
        set_control(f, static_cast<std::uint16_t>(field[0]));
        if (c.real_mode()) {
            f.instruction = (field[3] & 0xffff) | (field[4] >> 12 & 0xffff) << 16;
            f.operand = (field[5] & 0xffff) | (field[6] >> 12 & 0xffff) << 16;
            f.opcode = field[4] & 0x7ff;
            f.instruction_cs = f.operand_ds = 0;
        } else {
            f.instruction = field[3];
            f.operand = field[5];
            f.instruction_cs = static_cast<std::uint16_t>(field[4]);
            f.operand_ds = static_cast<std::uint16_t>(field[6]);
            f.opcode = wide ? field[4] >> 16 & 0x7ff : 0;
        }
    }
};

/// Whether an area, which may lie on two pages, can be written. Its first field of type T and its last byte are tried
/// before any of it is used: for each, first the segment limit, then the page.
template <class T> bool writable(Core &c, const Op *op, unsigned bytes) {
    Addr first, last;
    if (!address(c, op, sizeof(T), true, first))
        return false;
    if (!address(c, op, 1, true, last, bytes - 1))
        return try_part<T>(c, op, 0) && address(c, op, 1, true, last, bytes - 1);
    return first >> 12 == last >> 12 || (try_part<T>(c, op, 0) && try_part<std::uint8_t>(c, op, bytes - 1));
}
template <class T> bool readable(Core &c, const Op *op, unsigned bytes) {
    T first;
    std::uint8_t last;
    return load_part(c, op, 0, first) && load_part(c, op, bytes - 1, last);
}

template <class T> bool write_environment(Core &c, const Op *op, const Environment &e) {
    for (unsigned i = 0; i < 7; ++i)
        if (!store_part(c, op, i * sizeof(T), static_cast<T>(e.field[i])))
            return false;
    return true;
}
template <class T> bool read_environment(Core &c, const Op *op, Environment &e) {
    for (unsigned i = 0; i < 7; ++i) {
        T x;
        if (!load_part(c, op, i * sizeof(T), x))
            return false;
        e.field[i] = x;
    }
    return true;
}

template <class T> const Op *fnstenv(Core &c, const Op *op) {
    if (!ready_control(c) || !writable<T>(c, op, 7 * sizeof(T)) ||
        !write_environment<T>(c, op, Environment(c, sizeof(T) == 4)))
        return c.fault_at(op);
    set_control(c.fpu, c.fpu.control | kAllMasked);
    return op + 1;
}

template <class T> const Op *fldenv(Core &c, const Op *op) {
    Environment e;
    if (!ready(c) || !readable<T>(c, op, 7 * sizeof(T)) || !read_environment<T>(c, op, e))
        return c.fault_at(op);
    e.load_into(c, sizeof(T) == 4);
    return op + 1;
}

template <class T> const Op *fnsave(Core &c, const Op *op) {
    constexpr unsigned kEnvironment = 7 * sizeof(T);
    if (!ready_control(c) || !writable<T>(c, op, kEnvironment + kRegisterBytes) ||
        !write_environment<T>(c, op, Environment(c, sizeof(T) == 4)))
        return c.fault_at(op);
    for (unsigned i = 0; i < 8; ++i) {
        const X87::Reg &r = c.fpu.st[(c.fpu.top() + i) & 7];
        const unsigned at = kEnvironment + 10 * i;
        if (!store_part(c, op, at, r.significand) || !store_part(c, op, at + 8, r.sign_exponent))
            return c.fault_at(op);
    }
    initialize(c.fpu);
    return op + 1;
}

template <class T> const Op *frstor(Core &c, const Op *op) {
    constexpr unsigned kEnvironment = 7 * sizeof(T);
    Environment e;
    X87::Reg st[8];
    if (!ready(c) || !readable<T>(c, op, kEnvironment + kRegisterBytes) || !read_environment<T>(c, op, e))
        return c.fault_at(op);
    for (unsigned i = 0; i < 8; ++i) {
        const unsigned at = kEnvironment + 10 * i;
        if (!load_part(c, op, at, st[i].significand) || !load_part(c, op, at + 8, st[i].sign_exponent))
            return c.fault_at(op);
    }
    e.load_into(c, sizeof(T) == 4);
    for (unsigned i = 0; i < 8; ++i)
        c.fpu.st[(c.fpu.top() + i) & 7] = st[i];
    return op + 1;
}

const Op *fldcw(Core &c, const Op *op) {
    std::uint16_t x;
    if (!ready(c) || !load_part(c, op, 0, x))
        return c.fault_at(op);
    set_control(c.fpu, x);
    return op + 1;
}

const Op *fnstcw(Core &c, const Op *op) {
    return ready_control(c) && store_part(c, op, 0, c.fpu.control) ? op + 1 : c.fault_at(op);
}

const Op *fnstsw_memory(Core &c, const Op *op) {
    return ready_control(c) && store_part(c, op, 0, c.fpu.status) ? op + 1 : c.fault_at(op);
}
const Op *fnstsw_ax(Core &c, const Op *op) {
    if (!ready_control(c))
        return c.fault_at(op);
    set_reg<std::uint16_t>(c, rax * 8, c.fpu.status);
    return op + 1;
}

const Op *fninit(Core &c, const Op *op) {
    if (!ready_control(c))
        return c.fault_at(op);
    initialize(c.fpu);
    return op + 1;
}

const Op *fnclex(Core &c, const Op *op) {
    if (!ready_control(c))
        return c.fault_at(op);
    c.fpu.status &= static_cast<std::uint16_t>(~(kFlags | kStackFault | X87::kSummary | X87::kBusy));
    return op + 1;
}

/// FENI, FDISI and FSETPM of earlier coprocessors; a pending exception stays pending.
const Op *formerly(Core &c, const Op *op) { return ready_control(c) ? op + 1 : c.fault_at(op); }

/// FWAIT raises #NM only if both TS and MP of CR0 are set.
const Op *fwait(Core &c, const Op *op) {
    if ((c.cr0 & (cr0::mp | cr0::ts)) == (cr0::mp | cr0::ts))
        c.raise(exc_nm);
    else if (c.fpu.status & X87::kSummary)
        c.raise(exc_mf);
    else
        return op + 1;
    return c.fault_at(op);
}

template <Exec kNarrow, Exec kWide> Exec lower_format(const Insn &, Op &op) { return op.width == 2 ? kNarrow : kWide; }
Exec lower_fnstsw(const Insn &, Op &op) { return op.mem ? fnstsw_memory : fnstsw_ax; }

const Form kForms[] = {
    {ZYDIS_MNEMONIC_FNSTENV, lower_format<fnstenv<std::uint16_t>, fnstenv<std::uint32_t>>},
    {ZYDIS_MNEMONIC_FLDENV, lower_format<fldenv<std::uint16_t>, fldenv<std::uint32_t>>},
    {ZYDIS_MNEMONIC_FNSAVE, lower_format<fnsave<std::uint16_t>, fnsave<std::uint32_t>>},
    {ZYDIS_MNEMONIC_FRSTOR, lower_format<frstor<std::uint16_t>, frstor<std::uint32_t>>},
    {ZYDIS_MNEMONIC_FLDCW, fldcw},
    {ZYDIS_MNEMONIC_FNSTCW, fnstcw},
    {ZYDIS_MNEMONIC_FNSTSW, lower_fnstsw},
    {ZYDIS_MNEMONIC_FNINIT, fninit},
    {ZYDIS_MNEMONIC_FNCLEX, fnclex},
    {ZYDIS_MNEMONIC_FWAIT, fwait},
    {{ZYDIS_MNEMONIC_FENI8087_NOP, ZYDIS_MNEMONIC_FDISI8087_NOP, ZYDIS_MNEMONIC_FSETPM287_NOP}, formerly},
};
const Group kGroup("x87 control", kForms);

} // namespace

} // namespace moscope::x86
