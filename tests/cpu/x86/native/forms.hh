// SPDX-License-Identifier: BSD-3-Clause
// Every form of instruction that exists in user mode of 64-bit, 32-bit or 16-bit code, found by decoding all opcodes
// with all prefixes that choose an instruction, so that no list can miss one. A form is a mnemonic with the kinds and
// sizes of its operands and its opcode; registers, addresses and immediates are the case's to choose.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "cpu/x86/decode/isa.hh"
#include "cpu/x86/decode/lower.hh"
#include "cpu/x86/native/snapshot.hh"

namespace moscope::x86::native {

struct NativeForm {
    std::string name;
    Mode mode = Mode::code64;
    ZydisDecodedInstruction z;
    ZydisDecodedOperand op[ZYDIS_MAX_OPERAND_COUNT];
    Bytes prefixes;
    bool rex_w = false, two_bytes = false, modrm = false, memory = false;
    bool stops = false;    ///< a branch
    Bytes opcodes, modrms; ///< the choices: last opcode byte; ModRM (of a memory operand without mod and r/m)
    unsigned immediate_bytes = 0, offset_bytes = 0;

    bool is(ZydisMnemonic m) const { return z.mnemonic == m; }
    /// Its access to memory is indivisible.
    bool locks() const { return (z.attributes & ZYDIS_ATTRIB_HAS_LOCK) || (is(ZYDIS_MNEMONIC_XCHG) && memory_bytes()); }
    /// A register moves its operand in memory.
    bool is_bit_string() const {
        return is(ZYDIS_MNEMONIC_BTS) || is(ZYDIS_MNEMONIC_BTR) || is(ZYDIS_MNEMONIC_BTC) || is(ZYDIS_MNEMONIC_BT);
    }
    unsigned visible() const { return z.operand_count_visible; }
    /// JCXZ, JECXZ and JRCXZ: the address size chooses the instruction.
    bool jumps_by_count() const {
        return is(ZYDIS_MNEMONIC_JCXZ) || is(ZYDIS_MNEMONIC_JECXZ) || is(ZYDIS_MNEMONIC_JRCXZ);
    }
    bool has_mmx() const {
        for (unsigned i = 0; i < z.operand_count_visible; ++i)
            if (op[i].type == ZYDIS_OPERAND_TYPE_REGISTER &&
                ZydisRegisterGetClass(op[i].reg.value) == ZYDIS_REGCLASS_MMX)
                return true;
        return false;
    }
    /// Bytes of the visible memory operand; 0: it has none.
    unsigned memory_bytes() const {
        for (unsigned i = 0; i < z.operand_count_visible; ++i)
            if (op[i].type == ZYDIS_OPERAND_TYPE_MEMORY)
                return op[i].size / 8;
        return 0;
    }
};

inline bool decode(Mode mode, const Bytes &b, ZydisDecodedInstruction &z, ZydisDecodedOperand *op) {
    static const auto decoder = [](ZydisMachineMode m, ZydisStackWidth w) {
        ZydisDecoder x;
        ZydisDecoderInit(&x, m, w);
        return x;
    };
    static const ZydisDecoder wide = decoder(ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
    static const ZydisDecoder narrow = decoder(ZYDIS_MACHINE_MODE_LONG_COMPAT_32, ZYDIS_STACK_WIDTH_32);
    static const ZydisDecoder old = decoder(ZYDIS_MACHINE_MODE_LONG_COMPAT_16, ZYDIS_STACK_WIDTH_16);
    const ZydisDecoder &chosen = mode == Mode::code64 ? wide : mode == Mode::code32 ? narrow : old;
    return ZYAN_SUCCESS(ZydisDecoderDecodeFull(&chosen, b.data(), b.size(), &z, op));
}

/// Operands by type, size and place in the encoding: two encodings with the same text are cases of one form.
inline std::string signature(const ZydisDecodedInstruction &z, const ZydisDecodedOperand *op, bool &in_opcode) {
    std::string s = ZydisMnemonicGetString(z.mnemonic);
    if (z.attributes & ZYDIS_ATTRIB_HAS_LOCK)
        s = "lock " + s;
    if (z.attributes & (ZYDIS_ATTRIB_HAS_REP | ZYDIS_ATTRIB_HAS_REPE))
        s = "rep " + s;
    if (z.attributes & ZYDIS_ATTRIB_HAS_REPNE)
        s = "repne " + s;
    for (unsigned i = 0; i < z.operand_count_visible; ++i) {
        s += i ? ", " : " ";
        const bool fixed = op[i].encoding == ZYDIS_OPERAND_ENCODING_NONE;
        switch (op[i].type) {
        case ZYDIS_OPERAND_TYPE_REGISTER: {
            const auto c = ZydisRegisterGetClass(op[i].reg.value);
            s += fixed ? ZydisRegisterGetString(op[i].reg.value)
                       : (c == ZYDIS_REGCLASS_XMM   ? "xmm"
                          : c == ZYDIS_REGCLASS_MMX ? "mmx"
                          : c == ZYDIS_REGCLASS_X87 ? "st"
                                                    : "r") +
                             std::to_string(op[i].size);
            break;
        }
        case ZYDIS_OPERAND_TYPE_MEMORY: s += "m" + std::to_string(op[i].size); break;
        default: s += "imm" + std::to_string(op[i].size); break;
        }
        in_opcode |= op[i].encoding == ZYDIS_OPERAND_ENCODING_OPCODE;
    }
    return s + " /" + std::to_string(z.operand_width);
}

inline std::vector<NativeForm> all_forms(Mode mode = Mode::code64) {
    std::vector<NativeForm> forms;
    std::map<std::string, std::size_t> known;
    const auto add = [&](const Bytes &prefixes, bool rex_w, bool two_bytes, std::uint8_t opcode, int modrm) {
        Bytes b = prefixes;
        if (rex_w)
            b.push_back(0x48);
        if (two_bytes)
            b.push_back(0x0f);
        b.push_back(opcode);
        if (modrm >= 0)
            b.push_back(static_cast<std::uint8_t>(modrm));
        b.resize(15);
        NativeForm f;
        f.mode = mode;
        if (!decode(mode, b, f.z, f.op) || not_beside_the_host(f.z, f.op) ||
            f.z.encoding != ZYDIS_INSTRUCTION_ENCODING_LEGACY ||
            (modrm >= 0) != ((f.z.attributes & ZYDIS_ATTRIB_HAS_MODRM) != 0) || f.z.raw.rex.offset > 4)
            return;
        if (rex_w && f.z.raw.rex.W == 0)
            return;
        bool in_opcode = false;
        std::string name = signature(f.z, f.op, in_opcode);
        char code[16];
        std::snprintf(code, sizeof code, " (%s%02X)", two_bytes ? "0F " : "", in_opcode ? opcode & ~7u : opcode);
        name += code;
        if (name.find("lock") != 0 && !prefixes.empty() && prefixes[0] == 0xf0)
            return;
        if (!prefixes.empty() && prefixes[0] == 0x67 && !f.jumps_by_count())
            return;
        const auto it = known.find(name);
        if (it != known.end()) {
            NativeForm &same = forms[it->second];
            if (same.prefixes == prefixes && same.rex_w == rex_w) {
                if (in_opcode)
                    same.opcodes.push_back(opcode);
                if (modrm >= 0)
                    same.modrms.push_back(static_cast<std::uint8_t>(modrm));
            }
            return;
        }
        f.name = name;
        f.prefixes = prefixes;
        f.rex_w = rex_w;
        f.two_bytes = two_bytes;
        f.modrm = modrm >= 0;
        f.memory = f.modrm && f.z.raw.modrm.mod != 3;
        f.opcodes = {opcode};
        if (f.modrm)
            f.modrms = {static_cast<std::uint8_t>(modrm)};
        f.stops = f.z.meta.branch_type != ZYDIS_BRANCH_TYPE_NONE;
        f.immediate_bytes = (f.z.raw.imm[0].size + f.z.raw.imm[1].size) / 8;
        f.offset_bytes = f.modrm ? 0 : f.z.raw.disp.size / 8;
        known[name] = forms.size();
        forms.push_back(f);
    };
    for (const Bytes &prefixes : {Bytes{}, Bytes{0x66}, Bytes{0xf3}, Bytes{0xf2}, Bytes{0xf0}, Bytes{0xf0, 0x66},
                                  Bytes{0x66, 0xf3}, Bytes{0x66, 0xf2}, Bytes{0x67}, Bytes{0x67, 0x66}})
        for (bool rex_w : {false, true}) {
            if (rex_w && mode != Mode::code64)
                continue;
            for (bool two_bytes : {false, true})
                for (unsigned opcode = 0; opcode < 256; ++opcode) {
                    const bool prefix = (mode == Mode::code64 && (opcode & 0xf0) == 0x40) || (opcode & 0xe7) == 0x26 ||
                                        (opcode >= 0x64 && opcode <= 0x67) || opcode == 0xf0 || opcode == 0xf2 ||
                                        opcode == 0xf3 || opcode == 0x0f;
                    if (!two_bytes && prefix)
                        continue;
                    const auto code = static_cast<std::uint8_t>(opcode);
                    add(prefixes, rex_w, two_bytes, code, -1);
                    for (int reg = 0; reg < 8; ++reg)
                        add(prefixes, rex_w, two_bytes, code, reg << 3 | 3);
                    for (int modrm = 0xc0; modrm < 0x100; ++modrm)
                        add(prefixes, rex_w, two_bytes, code, modrm);
                }
        }
    return forms;
}

} // namespace moscope::x86::native
