// SPDX-License-Identifier: BSD-3-Clause
#include "cpu/x86/timed/op_timing.hh"

#include <Zydis/Zydis.h>

#include "base/error.hh"
#include "cpu/x86/decode/op.hh"

namespace moscope::x86 {

namespace {

constexpr unsigned kFlagsBit = 16, kXmmBit = 17, kX87Bit = 33;

RegMask mask_of(ZydisRegister r, ZydisMachineMode mode) {
    const ZydisRegister wide = ZydisRegisterGetLargestEnclosing(mode, r);
    switch (ZydisRegisterGetClass(wide)) {
    case ZYDIS_REGCLASS_GPR64:
    case ZYDIS_REGCLASS_GPR32: return RegMask{1} << ZydisRegisterGetId(wide);
    case ZYDIS_REGCLASS_FLAGS: return RegMask{1} << kFlagsBit;
    case ZYDIS_REGCLASS_X87:
    case ZYDIS_REGCLASS_MMX: return RegMask{1} << kX87Bit;
    case ZYDIS_REGCLASS_XMM:
    case ZYDIS_REGCLASS_YMM:
    case ZYDIS_REGCLASS_ZMM: return RegMask{1} << (kXmmBit + ZydisRegisterGetId(wide) % 16);
    default: return 0;
    }
}

struct Class {
    std::uint8_t latency, occupies;
};

Class class_of(const ZydisDecodedInstruction &z) {
    switch (z.mnemonic) {
    case ZYDIS_MNEMONIC_IMUL:
    case ZYDIS_MNEMONIC_MUL: return {static_cast<std::uint8_t>(z.operand_width == 64 ? 5 : 3), 0};
    case ZYDIS_MNEMONIC_DIV:
    case ZYDIS_MNEMONIC_IDIV: {
        const auto n = static_cast<std::uint8_t>(z.operand_width == 64 ? 71 : z.operand_width == 32 ? 39 : 23);
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

OpTiming timing_of(const ZydisDecodedInstruction &z, const ZydisDecodedOperand *operands, ZydisMachineMode mode) {
    OpTiming t;
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
                t.reads |= mask_of(o.mem.base, mode);
            if (o.mem.index != ZYDIS_REGISTER_NONE)
                t.reads |= mask_of(o.mem.index, mode);
        }
    }
    if (z.cpu_flags && !z.cpu_flags->tested)
        t.reads &= ~(RegMask{1} << kFlagsBit);
    // Pushes, pops, calls and returns: the stack engine renames the pointer.
    constexpr RegMask sp = RegMask{1} << rsp;
    if (z.meta.category == ZYDIS_CATEGORY_PUSH || z.meta.category == ZYDIS_CATEGORY_POP ||
        z.meta.category == ZYDIS_CATEGORY_CALL || z.meta.category == ZYDIS_CATEGORY_RET)
        t.writes &= ~sp;
    const Class c = class_of(z);
    t.latency = c.latency;
    t.occupies = c.occupies;
    return t;
}

constexpr OpTiming kEnd{.latency = 0};

} // namespace

TimingTable::TimingTable() {
    all_.reserve(std::size_t{1} << Op::kTimingBits);
    number(kEnd);
}

std::size_t TimingTable::Hash::operator()(const OpTiming &t) const {
    return (t.reads * 0x9e3779b97f4a7c15 ^ t.writes) * 0xff51afd7ed558ccd ^ (t.latency << 8 | t.occupies);
}

std::uint32_t TimingTable::number(const OpTiming &t) {
    const auto [at, inserted] = numbers_.try_emplace(t, static_cast<std::uint32_t>(all_.size()));
    if (inserted) {
        MOSCOPE_CHECK(all_.size() < 1u << Op::kTimingBits);
        all_.push_back(t);
    }
    return at->second;
}

std::vector<OpTiming> timing_of(std::span<const std::uint8_t> bytes, Mode mode, unsigned count) {
    const ZydisMachineMode machine = mode == Mode::code64   ? ZYDIS_MACHINE_MODE_LONG_64
                                     : mode == Mode::code32 ? ZYDIS_MACHINE_MODE_LEGACY_32
                                                            : ZYDIS_MACHINE_MODE_LEGACY_16;
    ZydisDecoder decoder;
    ZydisDecoderInit(&decoder, machine,
                     mode == Mode::code64   ? ZYDIS_STACK_WIDTH_64
                     : mode == Mode::code32 ? ZYDIS_STACK_WIDTH_32
                                            : ZYDIS_STACK_WIDTH_16);
    ZydisDecoderEnableMode(&decoder, ZYDIS_DECODER_MODE_TZCNT, ZYAN_FALSE);
    std::vector<OpTiming> all(count + 1); // the last one is the end of the block, which takes no time
    all[count] = kEnd;
    std::size_t at = 0;
    for (unsigned i = 0; i < count && at < bytes.size(); ++i) {
        ZydisDecodedInstruction z;
        ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];
        if (!ZYAN_SUCCESS(ZydisDecoderDecodeFull(&decoder, bytes.data() + at, bytes.size() - at, &z, operands)))
            break; // it faults or is a pseudo-instruction: one cycle
        all[i] = timing_of(z, operands, machine);
        at += z.length;
    }
    return all;
}

} // namespace moscope::x86
