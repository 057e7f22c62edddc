// SPDX-License-Identifier: BSD-3-Clause
// What a random case of an instruction needs beside its named operands: registers and memory that it reads without naming
// them, and values without which every execution would end the same way. A register that the operand's address is made
// of keeps its value.
#pragma once

#include "cpu/x86/native/cases.hh"

namespace moscope::x86::native {

class CaseMaker::Preparation {
  public:
    Preparation(CaseMaker &maker, Case &c, const ZydisDecodedInstruction &z, const ZydisDecodedOperand *op)
        : m_(maker), c_(c), z_(z), op_(op), r_(c.in.r) {}

    void run() {
        set(4, m_.stack_pointer(in_window(m_.v_.percent(90) ? 8 : 1)));
        arithmetic();
        exchange();
        pointers();
        saved_state();
        counted_branch();
        if (z_.meta.category == ZYDIS_CATEGORY_STRINGOP)
            string();
        branch();
    }

  private:
    std::uint64_t in_window(unsigned alignment) {
        return (kMiddle - 200 + m_.v_.below(400)) & ~std::uint64_t{alignment - 1};
    }
    bool addresses(unsigned n) const {
        for (unsigned i = 0; i < z_.operand_count_visible; ++i)
            if (op_[i].type == ZYDIS_OPERAND_TYPE_MEMORY)
                for (ZydisRegister x : {op_[i].mem.base, op_[i].mem.index})
                    if (x != ZYDIS_REGISTER_NONE && x != ZYDIS_REGISTER_RIP && x != ZYDIS_REGISTER_EIP &&
                        static_cast<unsigned>(ZydisRegisterGetId(x)) == n)
                        return true;
        return false;
    }
    void set(unsigned n, std::uint64_t x) {
        if (!addresses(n))
            r_[n] = x;
    }
    /// Of the instruction's address size; the bits above are random.
    std::uint64_t cut(std::uint64_t x) {
        return z_.address_width == 64   ? x
               : z_.address_width == 32 ? (x & 0xffffffff) | (m_.v_.next() << 32)
                                        : (x & 0xffff) | (m_.v_.next() << 16);
    }
    std::uint64_t pointer(std::uint64_t linear) { return cut(m_.offset(linear)); }

    /// Bit numbers near the operand, counts with a defined result, quotients that fit.
    void arithmetic() {
        switch (z_.mnemonic) {
        case ZYDIS_MNEMONIC_BT:
        case ZYDIS_MNEMONIC_BTS:
        case ZYDIS_MNEMONIC_BTR:
        case ZYDIS_MNEMONIC_BTC:
            if (m_.f_.memory && z_.operand_count_visible > 1 && op_[1].type == ZYDIS_OPERAND_TYPE_REGISTER) {
                const auto number = static_cast<unsigned>(ZydisRegisterGetId(op_[1].reg.value));
                const std::uint64_t bit = m_.v_.below(4096) - 2048;
                const std::uint64_t mask = z_.operand_width == 16   ? 0xffff
                                           : z_.operand_width == 32 ? 0xffffffff
                                                                    : ~0ull;
                set(number, (bit & mask) | (m_.v_.next() & ~mask));
            }
            break;
        case ZYDIS_MNEMONIC_SHLD:
        case ZYDIS_MNEMONIC_SHRD:
            if (z_.operand_width == 16)
                set(1, (m_.v_.next() & ~0x1full) | m_.v_.below(17));
            break;
        case ZYDIS_MNEMONIC_DIV:
        case ZYDIS_MNEMONIC_IDIV:
            if (m_.v_.percent(70)) { // a quotient that fits
                if (z_.operand_width == 8)
                    r_[0] = addresses(0) ? r_[0] : (r_[0] & ~0xffffull) | m_.v_.below(600);
                else
                    set(2, m_.v_.percent(50)   ? 0
                           : m_.v_.percent(50) ? static_cast<std::uint64_t>(static_cast<std::int64_t>(r_[0]) >> 63)
                                               : m_.v_.below(16));
            }
            break;
        default: break;
        }
    }

    /// Comparisons that succeed half of the time.
    void exchange() {
        switch (z_.mnemonic) {
        case ZYDIS_MNEMONIC_CMPXCHG:
            if (m_.v_.percent(50)) {
                const std::uint64_t x =
                    m_.f_.memory ? m_.peek<std::uint64_t>(c_.target) : r_[ZydisRegisterGetId(op_[0].reg.value) & 15];
                set(0, m_.v_.percent(80) ? x : (x & 0xffffffff) | (m_.v_.next() << 32));
            }
            break;
        case ZYDIS_MNEMONIC_CMPXCHG8B:
            if (m_.v_.percent(50)) {
                set(0, m_.peek<std::uint32_t>(c_.target));
                set(2, m_.peek<std::uint32_t>(c_.target + 4) | m_.v_.next() << 32);
            }
            break;
        case ZYDIS_MNEMONIC_CMPXCHG16B:
            if (m_.v_.percent(50)) {
                set(0, m_.peek<std::uint64_t>(c_.target));
                set(2, m_.peek<std::uint64_t>(c_.target + 8));
            }
            break;
        default: break;
        }
    }

    /// Implied addresses.
    void pointers() {
        switch (z_.mnemonic) {
        case ZYDIS_MNEMONIC_XLAT: r_[3] = pointer(in_window(1) - (r_[0] & 0xff)); break;
        case ZYDIS_MNEMONIC_MASKMOVQ:
        case ZYDIS_MNEMONIC_MASKMOVDQU: r_[7] = pointer(in_window(1)); break;
        case ZYDIS_MNEMONIC_POPF:
        case ZYDIS_MNEMONIC_POPFD:
        case ZYDIS_MNEMONIC_POPFQ: {
            const std::uint64_t top = in_window(8);
            r_[4] = m_.stack_pointer(top);
            m_.put(top, (m_.v_.next() & 0xcd5) | 0x202);
            break;
        }
        case ZYDIS_MNEMONIC_LEAVE:
        case ZYDIS_MNEMONIC_ENTER:
            if (m_.v_.percent(95))
                r_[5] = m_.stack_pointer(in_window(8));
            r_[5] &= m_.f_.mode == Mode::code64 ? ~0ull : ~15ull; // not around the end of 4 GB
            break;
        default: break;
        }
    }

    /// Images of state that load without a fault most of the time.
    void saved_state() {
        switch (z_.mnemonic) {
        case ZYDIS_MNEMONIC_LDMXCSR:
            if (m_.v_.percent(80))
                m_.put(c_.target, static_cast<std::uint32_t>(m_.v_.next() & 0xffff));
            m_.clear_misaligned_mask(c_.target);
            break;
        case ZYDIS_MNEMONIC_FXRSTOR:
        case ZYDIS_MNEMONIC_FXRSTOR64: {
            Snapshot other;
            m_.v_.fill(other);
            other.fx.mxcsr_mask = 0;
            if (m_.v_.percent(5))
                other.fx.mxcsr |= 1u << 31;
            if (c_.target >= kMiddle - 768 && c_.target <= kMiddle + 768 - sizeof(Fx))
                std::memcpy(m_.host(c_.target), &other.fx, sizeof(Fx));
            m_.clear_misaligned_mask(c_.target + offsetof(Fx, mxcsr));
            break;
        }
        default: break;
        }
    }

    /// Counts around zero.
    void counted_branch() {
        switch (z_.mnemonic) {
        case ZYDIS_MNEMONIC_LOOP:
        case ZYDIS_MNEMONIC_LOOPE:
        case ZYDIS_MNEMONIC_LOOPNE:
        case ZYDIS_MNEMONIC_JRCXZ:
        case ZYDIS_MNEMONIC_JECXZ:
        case ZYDIS_MNEMONIC_JCXZ:
            if (m_.v_.percent(50))
                r_[1] = m_.v_.below(3) | (m_.v_.percent(30) ? m_.v_.next() << (m_.layout_ ? 16 : 32) : 0);
            break;
        default: break;
        }
    }

    void string() {
        const unsigned size = z_.operand_width / 8;
        const std::uint64_t source = in_window(m_.v_.percent(50) ? size : 1);
        r_[6] = pointer(source);
        r_[7] = pointer(m_.v_.percent(30) ? source + m_.v_.below(64) - 32 : in_window(m_.v_.percent(50) ? size : 1));
        r_[1] = cut(m_.v_.percent(1) ? m_.v_.below(4000 / size) : m_.v_.below(20)); // beyond the pages at times
        if (m_.v_.percent(30)) { // something to find, something to differ
            for (std::uint64_t a = kMiddle - 256; a < kMiddle + 256; a += 8)
                m_.put(a, m_.v_.percent(90) ? 0x4141414141414141 : m_.v_.next());
            r_[0] = 0x4141414141414141;
        }
    }
    /// Targets are instructions that stop.
    void branch() {
        if (m_.f_.stops && z_.operand_count_visible && op_[0].type == ZYDIS_OPERAND_TYPE_REGISTER &&
            z_.meta.branch_type != ZYDIS_BRANCH_TYPE_NONE)
            r_[ZydisRegisterGetId(op_[0].reg.value) & 15] =
                m_.code_address() | (z_.operand_width == 16 ? m_.v_.next() << 16 : 0);
        if (z_.mnemonic == ZYDIS_MNEMONIC_RET)
            r_[4] = m_.stack_pointer(in_window(8));
    }

    CaseMaker &m_;
    Case &c_;
    const ZydisDecodedInstruction &z_;
    const ZydisDecodedOperand *op_;
    std::uint64_t *r_;
};

inline void CaseMaker::prepare(Case &c, const ZydisDecodedInstruction &z, const ZydisDecodedOperand *op) {
    Preparation(*this, c, z, op).run();
}

} // namespace moscope::x86::native
