// SPDX-License-Identifier: BSD-3-Clause
#include "cpu/x86/exec/simd/simd.hh"

namespace moscope::x86::simd {

bool refuse(Core &c) { return c.raise((c.cr0 & cr0::em) || !(c.cr4 & cr4::osfxsr) ? exc_ud : exc_nm); }

bool refuse_mmx(Core &c) { return c.raise((c.cr0 & cr0::em) ? exc_ud : (c.cr0 & cr0::ts) ? exc_nm : exc_mf); }

void implied_memory(const Insn &insn, Op &op, unsigned base) {
    op.mem = 1;
    op.base = static_cast<std::uint8_t>(base * 8);
    op.index = reg_zero * 8;
    op.scale = 0;
    op.disp = 0;
    const bool fast = insn.mode == Mode::code64 && insn.z.address_width == 64;
    op.legacy = !fast;
    op.seg = ds;
    for (unsigned i = 0; i < insn.z.operand_count; ++i)
        if (insn.is_mem(i))
            switch (insn.op[i].mem.segment) {
            case ZYDIS_REGISTER_ES: op.seg = es; break;
            case ZYDIS_REGISTER_CS: op.seg = cs; break;
            case ZYDIS_REGISTER_SS: op.seg = ss; break;
            case ZYDIS_REGISTER_FS: op.seg = fs; break;
            case ZYDIS_REGISTER_GS: op.seg = gs; break;
            default: break;
            }
    if (fast && op.seg != fs && op.seg != gs)
        op.seg = seg_none;
}

} // namespace moscope::x86::simd
