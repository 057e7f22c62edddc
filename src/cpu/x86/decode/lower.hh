// SPDX-License-Identifier: BSD-3-Clause
// Lowering: from Zydis's description of an instruction (AMD 24594, 26568, 26569) to an Op. Each group of instructions
// (cpu/x86/exec) registers a table of mnemonics with the function that lowers them.
#pragma once

#include <array>
#include <initializer_list>
#include <span>
#include <utility>
#include <vector>

#include <Zydis/Zydis.h>

#include "cpu/x86/decode/op.hh"
#include "cpu/x86/state.hh"

namespace moscope::x86 {

/// A decoded instruction and the mode it was decoded in.
struct Insn {
    ZydisDecodedInstruction z;
    ZydisDecodedOperand op[ZYDIS_MAX_OPERAND_COUNT]; ///< visible ones first
    Mode mode;

    bool is_reg(unsigned i) const { return i < z.operand_count && op[i].type == ZYDIS_OPERAND_TYPE_REGISTER; }
    bool is_mem(unsigned i) const { return i < z.operand_count && op[i].type == ZYDIS_OPERAND_TYPE_MEMORY; }
    bool is_imm(unsigned i) const { return i < z.operand_count && op[i].type == ZYDIS_OPERAND_TYPE_IMMEDIATE; }
    unsigned bytes(unsigned i) const { return op[i].size / 8; }
    ZydisRegister reg(unsigned i) const { return op[i].reg.value; }
};

/// Chooses Op::exec. The operands are filled in before: dst and src from the first and second visible operand that is
/// a register (general: byte offset; XMM: 16 times the index; MMX, segment, control, debug and x87: the index), the
/// memory operand (base, index, scale, disp, seg, legacy, mem = 1), imm, lock, rep, width (the instruction's operand
/// size), address_bytes. Null: the model lacks this form.
using Lower = Exec (*)(const Insn &, Op &);

/// A row of a group's table: the mnemonics that one function lowers, or one operation carries out.
struct Form {
    struct Names {
        Names(ZydisMnemonic one) : all{one} {}
        Names(std::initializer_list<ZydisMnemonic> several) : all(several) {}
        std::vector<ZydisMnemonic> all;
    };
    /// `ends`: branches, and instructions that change modes or translations or need an exact clock, end their block.
    Form(Names mnemonics, Lower function, bool ends = false)
        : names(std::move(mnemonics)), lower(function), ends_block(ends) {}
    Form(Names mnemonics, Exec operation, bool ends = false)
        : names(std::move(mnemonics)), exec(operation), ends_block(ends) {}

    Exec choose(const Insn &insn, Op &op) const { return exec ? exec : lower(insn, op); }

    Names names;
    Lower lower = nullptr;
    Exec exec = nullptr; ///< the operation, whatever the operands
    bool ends_block;
};

/// A row for each condition code: `names` in the order of the codes, F's operator() gives the function of a code.
template <class F> std::vector<Form> by_condition(const std::array<ZydisMnemonic, 16> &names, F f, bool ends = false) {
    std::vector<Form> forms;
    [&]<std::size_t... kCode>(std::index_sequence<kCode...>) {
        (forms.emplace_back(names[kCode], static_cast<Lower>(f.template operator()<kCode>()), ends), ...);
    }
    (std::make_index_sequence<16>());
    return forms;
}

/// A group's table, registered while the program starts.
struct Group {
    Group(const char *name, std::span<const Form> forms); ///< `forms` outlives the group
    Group(const char *name, std::vector<Form> &&forms) = delete;
    Group(const Group &) = delete;
    Group &operator=(const Group &) = delete;
    const char *name;
    std::span<const Form> forms;
    static const std::vector<const Group *> &all();
};

/// The form that takes the instruction, with Op::exec chosen; null: no group has it.
const Form *lower(const Insn &, Op &);

/// How many of the instruction's last bytes are its displacement and immediates. 0: it has none, or they are not last.
unsigned bytes_of_values(const ZydisDecodedInstruction &);

/// Fills `op` except for exec.
void fill_operands(const Insn &, Op &);

/// What runs for an instruction that no group has: #UD if the machine's CPUID does not promise it (isa.hh),
/// otherwise the run stops and names it.
Exec lower_unmodelled(bool promised);

/// The decoder of a mode, set up to decode as the processor family does.
const ZydisDecoder &decoder(Mode);

// --- instructions that fault whatever their operands
const Op *undefined(Core &, const Op *);  ///< #UD
const Op *protection(Core &, const Op *); ///< #GP(0)

/// f<T>() with the unsigned integer T of `bytes` bytes; if there is none, an empty result.
template <class F> auto with_size(unsigned bytes, F f) -> decltype(f.template operator()<std::uint64_t>()) {
    switch (bytes) {
    case 1: return f.template operator()<std::uint8_t>();
    case 2: return f.template operator()<std::uint16_t>();
    case 4: return f.template operator()<std::uint32_t>();
    case 8: return f.template operator()<std::uint64_t>();
    default: return {};
    }
}
/// F<T>::run by operand size in bytes.
template <template <class> class F> Exec by_size(unsigned bytes) {
    return with_size(bytes, []<class T>() -> Exec { return F<T>::run; });
}
/// The same by the instruction's operand size.
template <template <class> class F> Exec lower_sized(const Insn &, Op &op) { return by_size<F>(op.width); }

} // namespace moscope::x86
