// SPDX-License-Identifier: BSD-3-Clause
// From Zydis's description of an instruction to an Op. Each group of instructions (exec_*.cc) has a table of
// mnemonics with the function that lowers them, and registers it; nothing else has to be told of a new group.
#pragma once

#include <span>

#include <Zydis/Zydis.h>

#include "cpu/x86/decode/op.hh"
#include "cpu/x86/state.hh"

namespace moscope::x86 {

/// A decoded instruction and the mode it was decoded in.
struct Insn {
    ZydisDecodedInstruction z;
    ZydisDecodedOperand op[ZYDIS_MAX_OPERAND_COUNT]; ///< visible ones first
    Mode mode;

    unsigned operand_bytes() const { return z.operand_width / 8; }
    bool is_reg(unsigned i) const { return i < z.operand_count && op[i].type == ZYDIS_OPERAND_TYPE_REGISTER; }
    bool is_mem(unsigned i) const { return i < z.operand_count && op[i].type == ZYDIS_OPERAND_TYPE_MEMORY; }
    bool is_imm(unsigned i) const { return i < z.operand_count && op[i].type == ZYDIS_OPERAND_TYPE_IMMEDIATE; }
    unsigned bytes(unsigned i) const { return op[i].size / 8; }
    ZydisRegister reg(unsigned i) const { return op[i].reg.value; }
};

/// Chooses Op::exec; operands have been filled in already: dst and src from the first and second visible
/// operand that is a register (general: byte offset; XMM: 16 times the index; MMX, segment, control, debug and x87:
/// the index), the memory operand (base, index, scale, disp, seg, legacy, mem = 1), imm, lock, rep, width (the
/// instruction's operand size), address_bytes. Null: the model lacks this form.
using Lower = Exec (*)(const Insn &, Op &);

struct Form {
    ZydisMnemonic mnemonic;
    Lower lower;
    bool ends_block = false; ///< branches, and what changes modes, translations or needs an exact clock
};

/// A group's table, registered while the program starts.
struct Group {
    Group(const char *name, std::span<const Form> forms);
    const char *name;
    std::span<const Form> forms;
    static const std::vector<const Group *> &all();
};

/// The form that takes the instruction, with Op::exec chosen; null: no group has it.
const Form *lower(const Insn &, Op &);

/// Fills `op` except for exec.
void fill_operands(const Insn &, Op &);

/// What runs for an instruction that no group has: #UD if the machine's CPUID does not promise it (isa.hh),
/// otherwise the run stops and names it.
Exec lower_unmodelled(bool promised);

/// The decoder of a mode, set to what the family takes the bytes for.
const ZydisDecoder &decoder(Mode);

/// Picks f<std::uint8_t> ... f<std::uint64_t> by operand size in bytes.
template <template <class> class F> Exec by_size(unsigned bytes) {
    switch (bytes) {
    case 1: return F<std::uint8_t>::run;
    case 2: return F<std::uint16_t>::run;
    case 4: return F<std::uint32_t>::run;
    case 8: return F<std::uint64_t>::run;
    }
    return nullptr;
}

} // namespace moscope::x86
