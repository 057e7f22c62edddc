// SPDX-License-Identifier: BSD-3-Clause
#include "cpu/x86/decode/lower.hh"

#include <array>
#include <vector>

#include "cpu/x86/core.hh"

namespace moscope::x86 {

namespace {

std::vector<const Group *> &groups() {
    static std::vector<const Group *> all;
    return all;
}

/// MOVSD and CMPSD are two instructions each: of strings, and of SSE2.
using FormsOfMnemonic = std::array<const Form *, 2>;

std::array<FormsOfMnemonic, ZYDIS_MNEMONIC_MAX_VALUE + 1> &forms_by_mnemonic() {
    static std::array<FormsOfMnemonic, ZYDIS_MNEMONIC_MAX_VALUE + 1> table{};
    return table;
}

/// Byte offset of a general register; -1 if it is none.
int general_offset(ZydisRegister r) {
    constexpr int slot = 8;
    if (r >= ZYDIS_REGISTER_AL && r <= ZYDIS_REGISTER_BL)
        return (r - ZYDIS_REGISTER_AL) * slot;
    if (r >= ZYDIS_REGISTER_AH && r <= ZYDIS_REGISTER_BH)
        return (r - ZYDIS_REGISTER_AH) * slot + 1;
    if (r >= ZYDIS_REGISTER_SPL && r <= ZYDIS_REGISTER_DIL)
        return (r - ZYDIS_REGISTER_SPL + 4) * slot;
    if (r >= ZYDIS_REGISTER_R8B && r <= ZYDIS_REGISTER_R15B)
        return (r - ZYDIS_REGISTER_R8B + 8) * slot;
    if (r >= ZYDIS_REGISTER_AX && r <= ZYDIS_REGISTER_R15W)
        return (r - ZYDIS_REGISTER_AX) * slot;
    if (r >= ZYDIS_REGISTER_EAX && r <= ZYDIS_REGISTER_R15D)
        return (r - ZYDIS_REGISTER_EAX) * slot;
    if (r >= ZYDIS_REGISTER_RAX && r <= ZYDIS_REGISTER_R15)
        return (r - ZYDIS_REGISTER_RAX) * slot;
    return -1;
}

std::uint8_t operand_code(ZydisRegister r) {
    const int general = general_offset(r);
    if (general >= 0)
        return static_cast<std::uint8_t>(general);
    const auto id = static_cast<std::uint8_t>(ZydisRegisterGetId(r));
    return ZydisRegisterGetClass(r) == ZYDIS_REGCLASS_XMM ? static_cast<std::uint8_t>(id * 16) : id;
}

std::uint8_t segment_code(ZydisRegister r) {
    switch (r) {
    case ZYDIS_REGISTER_ES: return es;
    case ZYDIS_REGISTER_CS: return cs;
    case ZYDIS_REGISTER_SS: return ss;
    case ZYDIS_REGISTER_DS: return ds;
    case ZYDIS_REGISTER_FS: return fs;
    case ZYDIS_REGISTER_GS: return gs;
    default: return seg_none;
    }
}

void fill_memory(const Insn &insn, ZydisDecodedOperandMem m, Op &op) {
    // Zydis 4.0 takes REX.B for a base register where SIB says that there is none, with 32-bit addresses.
    if ((insn.z.attributes & ZYDIS_ATTRIB_HAS_SIB) && insn.z.raw.modrm.mod == 0 && insn.z.raw.sib.base == 5) {
        m.base = ZYDIS_REGISTER_NONE;
        m.disp.has_displacement = ZYAN_TRUE;
        m.disp.value = insn.z.raw.disp.value;
    }
    op.mem = 1;
    op.base = m.base == ZYDIS_REGISTER_NONE ? reg_zero * 8 : 0;
    op.disp = static_cast<std::int32_t>(m.disp.has_displacement ? m.disp.value : 0);
    op.seg = segment_code(m.segment);
    const bool fast = insn.mode == Mode::code64 && insn.z.address_width == 64;
    op.legacy = !fast;
    if (fast && op.seg != fs && op.seg != gs)
        op.seg = seg_none;
    if (m.base == ZYDIS_REGISTER_RIP || m.base == ZYDIS_REGISTER_EIP || m.base == ZYDIS_REGISTER_IP) {
        op.base = reg_block * 8;
        const std::int64_t from_block = std::int64_t{op.disp} + op.start + op.length;
        if (fast && from_block == static_cast<std::int32_t>(from_block))
            op.disp = static_cast<std::int32_t>(from_block);
        else
            op.legacy = 1; // there the displacement counts from the end of the instruction
    } else if (m.base != ZYDIS_REGISTER_NONE)
        op.base = static_cast<std::uint8_t>(general_offset(m.base));
    op.index = m.index == ZYDIS_REGISTER_NONE ? reg_zero * 8 : static_cast<std::uint8_t>(general_offset(m.index));
    op.scale = m.scale == 8 ? 3 : m.scale == 4 ? 2 : m.scale == 2 ? 1 : 0;
    // MOV with a 64-bit offset: the only address that does not fit the displacement.
    if (m.disp.has_displacement && m.disp.value != std::int64_t{op.disp} && m.base == ZYDIS_REGISTER_NONE)
        op.imm = static_cast<std::uint64_t>(m.disp.value);
}

const Op *unmodelled(Core &c, const Op *op) { return c.leave_before(op, Exit::unmodelled); }

} // namespace

Group::Group(const char *group_name, std::span<const Form> group_forms) : name(group_name), forms(group_forms) {
    groups().push_back(this);
    for (const Form &f : forms)
        for (const ZydisMnemonic mnemonic : f.names.all) {
            FormsOfMnemonic &known = forms_by_mnemonic()[mnemonic];
            MOSCOPE_CHECK(!known[1]);
            known[known[0] ? 1 : 0] = &f;
        }
}

const std::vector<const Group *> &Group::all() { return groups(); }

const Form *lower(const Insn &insn, Op &op) {
    for (const Form *f : forms_by_mnemonic()[insn.z.mnemonic])
        if (f && (op.exec = f->choose(insn, op)))
            return f;
    return nullptr;
}

const Op *undefined(Core &c, const Op *op) {
    c.raise(exc_ud);
    return c.fault_at(op);
}
const Op *protection(Core &c, const Op *op) {
    c.raise(exc_gp, 0);
    return c.fault_at(op);
}

Exec lower_unmodelled(bool promised) { return promised ? unmodelled : undefined; }

const ZydisDecoder &decoder(Mode mode) {
    static const std::array<ZydisDecoder, 3> all = [] {
        std::array<ZydisDecoder, 3> d;
        ZydisDecoderInit(&d[0], ZYDIS_MACHINE_MODE_LEGACY_16, ZYDIS_STACK_WIDTH_16);
        ZydisDecoderInit(&d[1], ZYDIS_MACHINE_MODE_LEGACY_32, ZYDIS_STACK_WIDTH_32);
        ZydisDecoderInit(&d[2], ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
        for (ZydisDecoder &x : d) {
            ZydisDecoderEnableMode(&x, ZYDIS_DECODER_MODE_AMD_BRANCHES, ZYAN_TRUE);
            // Later extensions, whose encodings the family decodes as older instructions.
            for (auto later : {ZYDIS_DECODER_MODE_TZCNT, ZYDIS_DECODER_MODE_MPX, ZYDIS_DECODER_MODE_CET,
                               ZYDIS_DECODER_MODE_WBNOINVD, ZYDIS_DECODER_MODE_CLDEMOTE})
                ZydisDecoderEnableMode(&x, later, ZYAN_FALSE);
        }
        return d;
    }();
    return all[static_cast<unsigned>(mode)];
}

unsigned bytes_of_values(const ZydisDecodedInstruction &z) {
    if (z.encoding !=
        ZYDIS_INSTRUCTION_ENCODING_LEGACY) // others have a part of the operation behind, 3DNow! among them
        return 0;
    const unsigned first = z.raw.disp.size ? z.raw.disp.offset : z.raw.imm[0].size ? z.raw.imm[0].offset : z.length;
    return z.length - first;
}

void fill_operands(const Insn &insn, Op &op) {
    const ZydisDecodedInstruction &z = insn.z;
    op.length = z.length;
    op.timing = bytes_of_values(z);
    op.width = static_cast<std::uint8_t>(z.operand_width / 8);
    op.address_bytes = static_cast<std::uint8_t>(z.address_width / 8);
    op.lock = (z.attributes & ZYDIS_ATTRIB_HAS_LOCK) != 0;
    op.rep = (z.attributes & (ZYDIS_ATTRIB_HAS_REP | ZYDIS_ATTRIB_HAS_REPE)) ? 1
             : (z.attributes & ZYDIS_ATTRIB_HAS_REPNE)                       ? 2
                                                                             : 0;
    op.base = op.index = reg_zero * 8;
    op.seg = seg_none;
    bool immediate = false;
    for (unsigned i = 0; i < z.operand_count_visible; ++i) {
        const ZydisDecodedOperand &o = insn.op[i];
        switch (o.type) {
        case ZYDIS_OPERAND_TYPE_REGISTER:
            if (i < 2)
                (i == 0 ? op.dst : op.src) = operand_code(o.reg.value);
            break;
        case ZYDIS_OPERAND_TYPE_MEMORY: fill_memory(insn, o.mem, op); break;
        case ZYDIS_OPERAND_TYPE_IMMEDIATE:
            if (!immediate)
                op.imm = o.imm.value.u;
            else
                op.disp = static_cast<std::int32_t>(o.imm.value.s);
            immediate = true;
            break;
        default: break;
        }
    }
}

} // namespace moscope::x86
