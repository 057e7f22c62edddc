// SPDX-License-Identifier: BSD-3-Clause
#include "cpu/x86/timed/op_timing.hh"

#include <Zydis/Zydis.h>

#include <cstring>

#include "base/error.hh"
#include "cpu/x86/decode/lower.hh"
#include "cpu/x86/decode/op.hh"

namespace moscope::x86 {

namespace {

constexpr unsigned kXmmBit = 17, kX87Bit = 33;

} // namespace

RegMask mask_of(ZydisRegister r, ZydisMachineMode mode) {
    const ZydisRegisterClass own = ZydisRegisterGetClass(r);
    if (own == ZYDIS_REGCLASS_X87 || own == ZYDIS_REGCLASS_MMX) // these are not parts of wider registers
        return RegMask{1} << kX87Bit;
    const ZydisRegister wide = ZydisRegisterGetLargestEnclosing(mode, r);
    switch (ZydisRegisterGetClass(wide)) {
    case ZYDIS_REGCLASS_GPR64:
    case ZYDIS_REGCLASS_GPR32: return RegMask{1} << ZydisRegisterGetId(wide);
    case ZYDIS_REGCLASS_XMM:
    case ZYDIS_REGCLASS_YMM:
    case ZYDIS_REGCLASS_ZMM: return RegMask{1} << (kXmmBit + ZydisRegisterGetId(wide) % 16);
    default: return 0;
    }
}

namespace {

struct Class {
    std::uint8_t latency, occupies;
};

Class class_of(const ZydisDecodedInstruction &z) {
    switch (z.mnemonic) {
    case ZYDIS_MNEMONIC_IMUL:
    case ZYDIS_MNEMONIC_MUL: return {static_cast<std::uint8_t>(z.operand_width == 64 ? 5 : 3), 0};
    case ZYDIS_MNEMONIC_DIV:
    case ZYDIS_MNEMONIC_IDIV: {
        const std::uint8_t n = division_cycles(z.operand_width);
        return {n, n};
    }
    case ZYDIS_MNEMONIC_LZCNT:
    case ZYDIS_MNEMONIC_POPCNT: return {2, 0};
    case ZYDIS_MNEMONIC_BSF:
    case ZYDIS_MNEMONIC_BSR: return {4, 3};
    case ZYDIS_MNEMONIC_CPUID: return {0, 40};
    case ZYDIS_MNEMONIC_RDTSC:
    case ZYDIS_MNEMONIC_RDTSCP: return {41, 41};
    case ZYDIS_MNEMONIC_RDMSR:
    case ZYDIS_MNEMONIC_WRMSR: return {87, 87};
    case ZYDIS_MNEMONIC_SYSCALL:
    case ZYDIS_MNEMONIC_SYSRET: return {0, 27};
    case ZYDIS_MNEMONIC_IRETQ:
    case ZYDIS_MNEMONIC_IRETD: return {0, 60};
    case ZYDIS_MNEMONIC_SWAPGS: return {0, 10};
    case ZYDIS_MNEMONIC_INVLPG: return {0, 101};
    case ZYDIS_MNEMONIC_PAUSE: return {0, 4};
    case ZYDIS_MNEMONIC_SQRTSS:
    case ZYDIS_MNEMONIC_SQRTPS: return {19, 16};
    case ZYDIS_MNEMONIC_SQRTSD:
    case ZYDIS_MNEMONIC_SQRTPD: return {27, 24};
    case ZYDIS_MNEMONIC_DIVSS:
    case ZYDIS_MNEMONIC_DIVPS: return {16, 13};
    case ZYDIS_MNEMONIC_DIVSD:
    case ZYDIS_MNEMONIC_DIVPD: return {20, 17};
    default: break;
    }
    switch (z.meta.category) {
    case ZYDIS_CATEGORY_X87_ALU: return {4, 0};
    case ZYDIS_CATEGORY_SSE: return {4, 0};
    case ZYDIS_CATEGORY_CONVERT: return {7, 0};
    case ZYDIS_CATEGORY_MMX: return {2, 0};
    default: return {1, 0};
    }
}

bool is_divider(ZydisMnemonic m) { return m == ZYDIS_MNEMONIC_DIV || m == ZYDIS_MNEMONIC_IDIV; }

OpUnit unit_of(const ZydisDecodedInstruction &z, const Class &c) {
    if (z.mnemonic == ZYDIS_MNEMONIC_LFENCE) // nothing younger is dispatched before all before it is done (AMD 24594)
        return OpUnit::all;
    if (!c.occupies)
        return OpUnit::none;
    if (is_divider(z.mnemonic))
        return OpUnit::integer_divider;
    switch (z.mnemonic) {
    case ZYDIS_MNEMONIC_SQRTSS:
    case ZYDIS_MNEMONIC_SQRTPS:
    case ZYDIS_MNEMONIC_SQRTSD:
    case ZYDIS_MNEMONIC_SQRTPD:
    case ZYDIS_MNEMONIC_DIVSS:
    case ZYDIS_MNEMONIC_DIVPS:
    case ZYDIS_MNEMONIC_DIVSD:
    case ZYDIS_MNEMONIC_DIVPD: return OpUnit::float_divider;
    case ZYDIS_MNEMONIC_BSF:
    case ZYDIS_MNEMONIC_BSR: return OpUnit::none; // op_pipes.cc
    case ZYDIS_MNEMONIC_PAUSE:
    case ZYDIS_MNEMONIC_RDTSC: return OpUnit::dispatch;
    default: return OpUnit::all;
    }
}

bool in_64_bit_mode(const ZydisDecodedInstruction &z) { return z.machine_mode == ZYDIS_MACHINE_MODE_LONG_64; }

/// The kind of the instruction, its operands not considered.
OpKind kind_of(const ZydisDecodedInstruction &z) {
    const bool near = z.meta.branch_type == ZYDIS_BRANCH_TYPE_NEAR || z.meta.branch_type == ZYDIS_BRANCH_TYPE_SHORT;
    switch (z.meta.category) {
    case ZYDIS_CATEGORY_COND_BR: return near ? OpKind::conditional : OpKind::other;
    case ZYDIS_CATEGORY_UNCOND_BR: return near ? OpKind::jump : OpKind::other;
    case ZYDIS_CATEGORY_CALL: return near ? OpKind::call : OpKind::other;
    case ZYDIS_CATEGORY_RET: return near ? OpKind::ret : OpKind::other;
    case ZYDIS_CATEGORY_BINARY:
    case ZYDIS_CATEGORY_LOGICAL:
    case ZYDIS_CATEGORY_LOGICAL_FP:
    case ZYDIS_CATEGORY_SHIFT:
    case ZYDIS_CATEGORY_ROTATE:
    case ZYDIS_CATEGORY_BITBYTE:
    case ZYDIS_CATEGORY_SETCC:
    case ZYDIS_CATEGORY_CMOV:
    case ZYDIS_CATEGORY_DATAXFER:
    case ZYDIS_CATEGORY_CONVERT:
    case ZYDIS_CATEGORY_NOP:
    case ZYDIS_CATEGORY_WIDENOP:
    case ZYDIS_CATEGORY_PREFETCH:
    case ZYDIS_CATEGORY_LZCNT: return OpKind::plain;
    case ZYDIS_CATEGORY_FLAGOP: // CLI and STI change more than flags
        return z.mnemonic == ZYDIS_MNEMONIC_CLI || z.mnemonic == ZYDIS_MNEMONIC_STI ? OpKind::other : OpKind::plain;
    case ZYDIS_CATEGORY_SEMAPHORE:
        switch (z.mnemonic) {
        case ZYDIS_MNEMONIC_CMPXCHG:
        case ZYDIS_MNEMONIC_CMPXCHG8B:
        case ZYDIS_MNEMONIC_CMPXCHG16B:
        case ZYDIS_MNEMONIC_XADD: return OpKind::plain;
        default: return OpKind::other;
        }
    case ZYDIS_CATEGORY_PUSH:
    case ZYDIS_CATEGORY_POP:
        switch (z.mnemonic) {
        case ZYDIS_MNEMONIC_PUSH:
        case ZYDIS_MNEMONIC_POP: return OpKind::stack;
        default: return OpKind::other;
        }
    case ZYDIS_CATEGORY_SSE:
        switch (z.mnemonic) {
        case ZYDIS_MNEMONIC_FXSAVE:
        case ZYDIS_MNEMONIC_FXSAVE64:
        case ZYDIS_MNEMONIC_FXRSTOR:
        case ZYDIS_MNEMONIC_FXRSTOR64:
        case ZYDIS_MNEMONIC_LDMXCSR:
        case ZYDIS_MNEMONIC_STMXCSR: return OpKind::other;
        default: return OpKind::plain;
        }
    default:
        return z.mnemonic == ZYDIS_MNEMONIC_LEA || z.mnemonic == ZYDIS_MNEMONIC_LEAVE ? OpKind::plain : OpKind::other;
    }
}

OpKind kind_of(const ZydisDecodedInstruction &z, const ZydisDecodedOperand *operands) {
    OpKind k = kind_of(z);
    if (!in_64_bit_mode(z) || (z.attributes & (ZYDIS_ATTRIB_HAS_LOCK | ZYDIS_ATTRIB_HAS_REP | ZYDIS_ATTRIB_HAS_REPE |
                                               ZYDIS_ATTRIB_HAS_REPNE)))
        return OpKind::other;
    for (unsigned i = 0; i < z.operand_count; ++i) {
        const ZydisDecodedOperand &o = operands[i];
        const bool memory = o.type == ZYDIS_OPERAND_TYPE_MEMORY;
        if (memory && z.mnemonic == ZYDIS_MNEMONIC_XCHG) // locked
            return OpKind::other;
        if (i == 0 && (k == OpKind::jump || k == OpKind::call) && o.type != ZYDIS_OPERAND_TYPE_IMMEDIATE)
            k = k == OpKind::jump ? OpKind::indirect : OpKind::indirect_call;
        if (o.type != ZYDIS_OPERAND_TYPE_REGISTER)
            continue;
        switch (ZydisRegisterGetClass(o.reg.value)) {
        case ZYDIS_REGCLASS_GPR8:
        case ZYDIS_REGCLASS_GPR16:
        case ZYDIS_REGCLASS_GPR32:
        case ZYDIS_REGCLASS_GPR64:
        case ZYDIS_REGCLASS_XMM:
        case ZYDIS_REGCLASS_FLAGS:
        case ZYDIS_REGCLASS_IP: break;
        default:
            if (o.reg.value != ZYDIS_REGISTER_MXCSR)
                return OpKind::other;
        }
    }
    return k;
}

OpTiming timing_of(const ZydisDecodedInstruction &z, const ZydisDecodedOperand *operands, ZydisMachineMode mode) {
    OpTiming t;
    RegMask address = 0;
    for (unsigned i = 0; i < z.operand_count; ++i) {
        const ZydisDecodedOperand &o = operands[i];
        if (o.type == ZYDIS_OPERAND_TYPE_REGISTER) {
            const RegMask m = mask_of(o.reg.value, mode);
            if (o.actions & ZYDIS_OPERAND_ACTION_MASK_READ)
                t.reads |= m;
            if (o.actions & ZYDIS_OPERAND_ACTION_MASK_WRITE)
                t.writes |= m;
        } else if (o.type == ZYDIS_OPERAND_TYPE_MEMORY) {
            if (o.mem.base != ZYDIS_REGISTER_NONE)
                address |= mask_of(o.mem.base, mode);
            if (o.mem.index != ZYDIS_REGISTER_NONE)
                address |= mask_of(o.mem.index, mode);
        }
    }
    t.reads |= address;
    if (z.mnemonic != ZYDIS_MNEMONIC_LEA)
        t.address = static_cast<std::uint16_t>(address);
    if (z.mnemonic == ZYDIS_MNEMONIC_LEAVE) // it pops from where RBP points
        t.address = 1 << rbp;
    // Pushes, pops, calls and returns: the stack engine renames the pointer.
    constexpr RegMask sp = RegMask{1} << rsp;
    if (z.meta.category == ZYDIS_CATEGORY_PUSH || z.meta.category == ZYDIS_CATEGORY_POP ||
        z.meta.category == ZYDIS_CATEGORY_CALL || z.meta.category == ZYDIS_CATEGORY_RET)
        t.writes &= ~sp;
    const Class c = class_of(z);
    t.latency = c.latency;
    t.occupies = c.occupies;
    t.unit = unit_of(z, c);
    t.kind = kind_of(z, operands);
    return t;
}

constexpr OpTiming kEnd{.latency = 0};

} // namespace

OpPipes pipes_of(const ZydisDecodedInstruction &, const ZydisDecodedOperand *, const OpTiming &); // op_pipes.cc

TimingTable::TimingTable() {
    all_.reserve(std::size_t{1} << Op::kTimingBits);
    pipes_.reserve(std::size_t{1} << Op::kTimingBits);
    number({kEnd, {}});
}

std::size_t TimingTable::Hash::operator()(const TimedOp &o) const {
    const OpTiming &t = o.timing;
    return (t.reads * 0x9e3779b97f4a7c15 ^ t.writes) * 0xff51afd7ed558ccd ^
           (t.latency << 8 | t.occupies | o.pipes.latency << 16 | o.pipes.pipes << 24) ^
           (o.pipes.sources ^ o.pipes.writes << 1) * 0xc4ceb9fe1a85ec53;
}

std::uint32_t TimingTable::number(TimedOp o) {
    o.timing.complete();
    return enter(o);
}

std::uint32_t TimingTable::apart(std::uint32_t number) {
    TimedOp o{all_[number], pipes_[number]};
    o.timing.touches |= kApart;
    return enter(o);
}

std::uint32_t TimingTable::enter(const TimedOp &o) {
    const auto [at, inserted] = numbers_.try_emplace(o, static_cast<std::uint32_t>(all_.size()));
    if (inserted) {
        MOSCOPE_CHECK(all_.size() < 1u << Op::kTimingBits);
        all_.push_back(o.timing);
        pipes_.push_back(o.pipes);
    }
    return at->second;
}

namespace {

ZydisMachineMode machine_mode(Mode mode) {
    return mode == Mode::code64   ? ZYDIS_MACHINE_MODE_LONG_64
           : mode == Mode::code32 ? ZYDIS_MACHINE_MODE_LEGACY_32
                                  : ZYDIS_MACHINE_MODE_LEGACY_16;
}

/// The timing of the instruction at the beginning of `bytes`. Returns its length; 0: it faults or is a
/// pseudo-instruction. `values`: as bytes_of_values() says.
unsigned timing_of_one(std::span<const std::uint8_t> bytes, Mode mode, TimedOp &out, unsigned &values) {
    ZydisDecodedInstruction z;
    ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];
    if (!ZYAN_SUCCESS(ZydisDecoderDecodeFull(&decoder(mode), bytes.data(), bytes.size(), &z, operands)))
        return 0;
    out.timing = timing_of(z, operands, machine_mode(mode));
    out.pipes = pipes_of(z, operands, out.timing);
    values = bytes_of_values(z);
    return z.length;
}

} // namespace

std::uint32_t TimingTable::number_of(std::span<const std::uint8_t> bytes, unsigned values, Mode mode) {
    if (bytes.size() > Head::kBytes || values >= bytes.size())
        return kUnknown;
    Head head;
    std::memcpy(head.byte, bytes.data(), bytes.size() - values);
    head.byte[Head::kBytes] = static_cast<std::uint8_t>(bytes.size() << 2 | static_cast<unsigned>(mode));
    if (const auto known = heads_.find(head); known != heads_.end())
        return known->second;
    TimedOp o;
    unsigned own_values = 0;
    if (timing_of_one(bytes, mode, o, own_values) != bytes.size() || own_values != values)
        return kUnknown;
    return heads_[head] = number(o);
}

std::vector<TimedOp> timing_of(std::span<const std::uint8_t> bytes, Mode mode, unsigned count) {
    std::vector<TimedOp> all(count + 1); // the last one is the end of the block, which takes no time
    all[count].timing = kEnd;
    unsigned values;
    for (unsigned i = 0, length; i < count && !bytes.empty(); ++i, bytes = bytes.subspan(length))
        if (!(length = timing_of_one(bytes, mode, all[i], values)))
            break; // a cycle for each from here on
    return all;
}

} // namespace moscope::x86
