// SPDX-License-Identifier: BSD-3-Clause
// The table of all instructions, found by decoding all opcodes with all prefixes that choose an instruction.
#include <array>
#include <map>
#include <set>
#include <tuple>

#include "cpu/x86/decode/isa.hh"
#include "cpu/x86/decode/lower.hh"

namespace moscope::x86 {

namespace {

constexpr unsigned kLongest = 15;
using Bytes = std::array<std::uint8_t, 24>;

/// Bytes of opcode `opcode` of map `map` (one byte, 0F, 0F 38, 0F 3A, 3DNow!), then `next`; zeros follow.
Bytes encoding(std::uint8_t prefix, bool rex_w, unsigned map, std::uint8_t opcode, std::uint8_t next) {
    Bytes b{};
    unsigned n = 0;
    if (prefix)
        b[n++] = prefix;
    if (rex_w)
        b[n++] = 0x48;
    if (map)
        b[n++] = 0x0f;
    if (map == 2)
        b[n++] = 0x38;
    if (map == 3)
        b[n++] = 0x3a;
    if (map == 4)
        b[n++] = 0x0f;
    if (map == 4) { // the opcode comes last, wherever that is
        b[n++] = next;
        while (n < b.size())
            b[n++] = opcode;
        return b;
    }
    b[n++] = opcode;
    b[n++] = next;
    return b;
}

std::string form_key(const Insn &insn) {
    std::string key = std::to_string(static_cast<unsigned>(insn.mode)) +
                      (insn.z.meta.branch_type == ZYDIS_BRANCH_TYPE_FAR ? "f" : "n");
    for (unsigned i = 0; i < insn.z.operand_count_visible; ++i) {
        const ZydisDecodedOperand &o = insn.op[i];
        key += " " + std::to_string(o.type) + ":" + std::to_string(o.size);
        if (o.type == ZYDIS_OPERAND_TYPE_REGISTER)
            key += ":" + std::to_string(ZydisRegisterGetClass(o.reg.value));
    }
    return key + "/" + std::to_string(insn.z.operand_width);
}

std::string hex(const Bytes &b, unsigned n) {
    constexpr char digit[] = "0123456789abcdef";
    std::string s;
    for (unsigned i = 0; i < n; ++i)
        s += {digit[b[i] >> 4], digit[b[i] & 15]};
    return s;
}

const Group *group_of(const Form *form) {
    for (const Group *g : Group::all())
        if (form >= g->forms.data() && form < g->forms.data() + g->forms.size())
            return g;
    return nullptr;
}

struct Table {
    explicit Table(const CpuModel &model) : promises(model) {}

    void add(const Insn &insn, const Bytes &bytes) {
        const auto &z = insn.z;
        if (z.encoding != ZYDIS_INSTRUCTION_ENCODING_LEGACY && z.encoding != ZYDIS_INSTRUCTION_ENCODING_3DNOW)
            return;
        if (!seen.insert({z.mnemonic, z.meta.isa_set, form_key(insn)}).second)
            return;
        const bool fresh = !rows.contains({z.mnemonic, z.meta.isa_set});
        IsaRow &row = rows[{z.mnemonic, z.meta.isa_set}];
        if (fresh) {
            const IsaFeature *f = feature_of(z.meta.isa_set);
            row.mnemonic = ZydisMnemonicGetString(z.mnemonic);
            row.set = ZydisISASetGetString(z.meta.isa_set);
            row.feature = f ? f->name : "-";
            row.promised = promises(z);
        }
        ++row.forms;
        if (const char *alone = not_beside_the_host(z, insn.op))
            row.apart.insert(alone);
        else
            ++row.compared;
        Op op;
        fill_operands(insn, op);
        const Form *form = lower(insn, op);
        if (!form)
            row.lacking.push_back(hex(bytes, z.length));
        else if (row.group.empty())
            row.group = group_of(form)->name;
    }

    Promises promises;
    std::map<std::pair<ZydisMnemonic, ZydisISASet>, IsaRow> rows;
    std::set<std::tuple<ZydisMnemonic, ZydisISASet, std::string>> seen;
};

} // namespace

std::vector<IsaRow> isa_table(const CpuModel &model) {
    Table table(model);
    for (Mode mode : {Mode::code16, Mode::code32, Mode::code64})
        for (std::uint8_t prefix : {0x00, 0x66, 0xf3, 0xf2})
            for (bool rex_w : {false, true}) {
                if (rex_w && mode != Mode::code64)
                    continue;
                for (unsigned map = 0; map < 5; ++map)
                    for (unsigned opcode = 0; opcode < 256; ++opcode)
                        for (unsigned next = 0; next < 256; ++next) {
                            const Bytes b = encoding(prefix, rex_w, map, static_cast<std::uint8_t>(opcode),
                                                     static_cast<std::uint8_t>(next));
                            Insn insn;
                            insn.mode = mode;
                            if (ZYAN_SUCCESS(
                                    ZydisDecoderDecodeFull(&decoder(mode), b.data(), kLongest, &insn.z, insn.op)))
                                table.add(insn, b);
                        }
            }
    std::vector<IsaRow> rows;
    for (auto &[key, row] : table.rows)
        rows.push_back(std::move(row));
    return rows;
}

} // namespace moscope::x86
