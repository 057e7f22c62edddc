// SPDX-License-Identifier: BSD-3-Clause
// Where manuals are silent or leave a choice, the model does as Intel's processors do. This list gives what AMD hosts
// (families 25 and 26 were measured) do instead. Each entry recognises one form under one condition, checks as far as it can that
// the host did what the list says, and makes only that equal; the rest of the execution is compared. On other hosts no
// entry applies.
//
//   0F 0D with a register              #UD: PREFETCH is for memory; elsewhere it is a NOP
//   F3 REX.B 90                        exchanges rAX and r8: with REX.B, 90 is no NOP, so F3 makes no PAUSE of it
//   MOVD, MOVQ, MOVNTQ of MMX          a store that faults leaves the x87 stack's top as it was; elsewhere it is 0 by then
//   FST.., FIST.., FBSTP               an unmasked exception suppresses the store, but the operand's address is checked
//                                      all the same
//   FSTP m80, FBSTP                    family 25: with the second part in a page that may not be written, the first has
//                                      been stored
//   FSTP m80, FBSTP                    with the second part beyond the segment's limit, nothing has been stored; elsewhere
//                                      the first part has been
//   GS:[offset]                        #GP for an offset that is not canonical; elsewhere only the sum with the base has to be
//   66 63 /r (MOVSXD of 16 bits)       reads four bytes, of which it needs two
//   REP, 32-bit addresses              no element done (count 0, or a fault of the first) leaves upper halves of rCX,
//                                      rSI, rDI; elsewhere they are cleared
//   REP CMPS, SCAS                     a fault leaves the flags of the last comparison done; elsewhere those before the instruction
//   CMPS                               where both operands fault, fast short REP CMPSB (Zen 4) and each CMPS (Zen 5)
//                                      report the fault of rSI; elsewhere that of rDI
//   SHLD, SHRD of 16 bits by over 16   the result and the flags, which are undefined
//   EXTRQ, INSERTQ                     the upper half of the register, which is undefined; Intel's processors lack them
//   one access over 4 GiB, 32-bit code #GP; elsewhere a segment of 4 GiB is a ring (test_address_wrap.cc)
#pragma once

#include "cpu/x86/native/compare.hh"
#include "cpu/x86/native/host_cpu.hh"
#include "cpu/x86/native/model_cpu.hh"

namespace moscope::x86::native {

class AmdHost {
  public:
    AmdHost(const NativeForm &form, const Case &c, ModelCpu &model, const Outcome &host, Outcome &got, Snapshot &native,
            Snapshot &modelled)
        : mode_(form.mode),
          stops_(form.stops),
          c_(c),
          model_(model),
          host_(host),
          got_(got),
          native_(native),
          modelled_(modelled) {}

    void make_equal() {
        if (got_.lacking || !decode(mode_, c_.code, z_, op_))
            return;
        // As in the model's fill_memory: Zydis 4.0 takes REX.B for a base register where SIB says that there is none.
        if ((z_.attributes & ZYDIS_ATTRIB_HAS_SIB) && z_.raw.modrm.mod == 0 && z_.raw.sib.base == 5)
            for (ZydisDecodedOperand &o : op_)
                if (o.type == ZYDIS_OPERAND_TYPE_MEMORY && o.encoding == ZYDIS_OPERAND_ENCODING_MODRM_RM) {
                    o.mem.base = ZYDIS_REGISTER_NONE;
                    o.mem.disp.value = z_.raw.disp.value;
                }
        register_of_prefetch();
        exchange_that_is_no_pause();
        suppressed_x87_store();
        gs_offset();
        movsxd_of_16_bits();
        mmx_store_that_faults();
        x87_store_in_two_parts();
        compare_of_two_that_fault();
        repeated_string();
        long_double_shift();
        upper_half_of_sse4a();
    }

  private:
    bool is(ZydisMnemonic m) const { return z_.mnemonic == m; }
    template <class... M> bool is_any(M... m) const { return (is(m) || ...); }
    bool both_complete() const { return host_.vector == -1 && got_.vector == -1; }
    bool only_host_faults() const { return host_.vector >= 0 && got_.vector == -1; }
    bool both_fault() const { return host_.vector >= 0 && got_.vector == host_.vector; }
    bool repeats() const {
        return z_.attributes & (ZYDIS_ATTRIB_HAS_REP | ZYDIS_ATTRIB_HAS_REPE | ZYDIS_ATTRIB_HAS_REPNE);
    }
    unsigned id(unsigned operand) const {
        return static_cast<unsigned>(ZydisRegisterGetId(op_[operand].reg.value)) & 15;
    }
    bool in_memory(unsigned operand) const {
        return operand < z_.operand_count_visible && op_[operand].type == ZYDIS_OPERAND_TYPE_MEMORY;
    }
    /// Linear address.
    std::uint64_t address(unsigned operand) const {
        const std::uint64_t a = operand_offset(z_, op_[operand], c_) + segment_base(op_[operand], c_);
        return mode_ == Mode::code64 ? a : a & 0xffffffff;
    }
    static bool canonical(std::uint64_t a) { return a + (std::uint64_t{1} << 47) < std::uint64_t{1} << 48; }
    static std::uint64_t of_width(unsigned bits) { return bits == 64 ? ~0ull : (std::uint64_t{1} << bits) - 1; }
    void fault_like_host() {
        got_ = host_;
        modelled_.rip = c_.at - code_base(c_.layout);
    }
    void take_from_host(std::uint64_t at, unsigned bytes) {
        if (at >= kData && at + bytes <= kReadOnly)
            std::memcpy(model_.data() + (at - kData), HostCpu::memory(at), bytes);
    }
    static bool same_x87(const Fx &a, const Fx &b) {
        bool same = a.status == b.status && a.valid == b.valid;
        for (unsigned i = 0; i < 8; ++i)
            same = same && a.st[i].significand == b.st[i].significand && a.st[i].sign_exponent == b.st[i].sign_exponent;
        return same;
    }

    void register_of_prefetch() {
        if (is(ZYDIS_MNEMONIC_NOP) && z_.opcode_map == ZYDIS_OPCODE_MAP_0F && z_.opcode == 0x0d &&
            z_.raw.modrm.mod == 3 && host_.vector == exc_ud && only_host_faults())
            fault_like_host();
    }

    void exchange_that_is_no_pause() {
        if (!is(ZYDIS_MNEMONIC_PAUSE) || !z_.raw.rex.B || !both_complete())
            return;
        unsigned bits = z_.raw.rex.W ? 64 : 32;
        for (unsigned i = 0; i < z_.raw.prefix_count; ++i)
            if (z_.raw.prefixes[i].value == 0x66 && bits == 32)
                bits = 16;
        const auto put = [&](std::uint64_t old, std::uint64_t x) {
            return bits == 16 ? (old & ~0xffffull) | (x & 0xffff) : x & of_width(bits);
        };
        const std::uint64_t a = c_.in.r[rax], b = c_.in.r[r8];
        if (native_.r[rax] == put(a, b) && native_.r[r8] == put(b, a)) {
            native_.r[rax] = a;
            native_.r[r8] = b;
        }
    }

    /// The model without the exception: it ends as the host does, and the state is that before the instruction.
    void suppressed_x87_store() {
        constexpr std::uint16_t kSummary = 0x80, kMasks = 0x3f;
        if (!is_any(ZYDIS_MNEMONIC_FST, ZYDIS_MNEMONIC_FSTP, ZYDIS_MNEMONIC_FIST, ZYDIS_MNEMONIC_FISTP,
                    ZYDIS_MNEMONIC_FISTTP, ZYDIS_MNEMONIC_FBSTP) ||
            !in_memory(0) || !only_host_faults() || !(modelled_.fx.status & kSummary) || (c_.in.fx.status & kSummary))
            return;
        Snapshot in = c_.in, out;
        in.fx.control |= kMasks;
        const Outcome masked = model_.run(c_.code, c_.at, in, out, mode_, c_.layout, stops_);
        if (masked.vector < 0)
            return;
        got_ = masked;
        modelled_ = out;
        modelled_.fx.control = c_.in.fx.control;
    }

    void gs_offset() {
        if (mode_ != Mode::code64 || z_.address_width != 64 || got_.vector != exc_pf || host_.vector != exc_gp ||
            host_.error != 0)
            return;
        for (unsigned i = 0; i < z_.operand_count_visible; ++i)
            if (in_memory(i) && op_[i].mem.segment == ZYDIS_REGISTER_GS && !canonical(operand_offset(z_, op_[i], c_)) &&
                canonical(address(i)) && got_.address == address(i))
                got_ = host_;
    }

    void movsxd_of_16_bits() {
        if (!is(ZYDIS_MNEMONIC_MOVSXD) || z_.operand_width != 16 || !in_memory(1) || !only_host_faults() ||
            host_.vector != exc_pf)
            return;
        const std::uint64_t page = (address(1) + 3) & ~std::uint64_t{0xfff};
        if (page < address(1) + 2 || host_.address != page)
            return;
        fault_like_host();
        modelled_.r[id(0)] = c_.in.r[id(0)];
    }

    void mmx_store_that_faults() {
        if (!is_any(ZYDIS_MNEMONIC_MOVD, ZYDIS_MNEMONIC_MOVQ, ZYDIS_MNEMONIC_MOVNTQ) || !in_memory(0) ||
            ZydisRegisterGetClass(op_[1].reg.value) != ZYDIS_REGCLASS_MMX || !both_fault() ||
            !same_x87(native_.fx, c_.in.fx))
            return;
        // Registers have not moved, but are counted from another top.
        Fx taken = c_.in.fx;
        const unsigned top = taken.status >> 11 & 7;
        taken.status &= static_cast<std::uint16_t>(~(7u << 11));
        for (unsigned i = 0; i < 8; ++i)
            taken.st[(top + i) & 7] = c_.in.fx.st[i];
        if (same_x87(taken, modelled_.fx)) {
            native_.fx.status = taken.status;
            std::memcpy(native_.fx.st, taken.st, sizeof taken.st);
        }
    }

    void x87_store_in_two_parts() {
        constexpr unsigned kFirst = 8, kAll = 10;
        if (!is_any(ZYDIS_MNEMONIC_FSTP, ZYDIS_MNEMONIC_FBSTP) || !in_memory(0) || op_[0].size != kAll * 8 ||
            !both_fault())
            return;
        const std::uint64_t at = address(0), offset = operand_offset(z_, op_[0], c_);
        const auto between_parts = [](std::uint64_t from, std::uint64_t end) {
            return from + kFirst <= end && from + kAll > end;
        };
        const bool page = host_.vector == exc_pf && host_.address == kReadOnly && between_parts(at, kReadOnly);
        const bool limit = (host_.vector == exc_gp || host_.vector == exc_ss) &&
                           between_parts(offset, std::uint64_t{kLayouts[c_.layout].limit} + 1);
        if (page || limit)
            take_from_host(at, kFirst);
    }

    void repeated_string() {
        if (z_.meta.category != ZYDIS_CATEGORY_STRINGOP || !repeats() || got_.vector != host_.vector)
            return;
        const std::uint64_t mask = of_width(z_.address_width);
        const std::uint64_t done = (c_.in.r[rcx] - modelled_.r[rcx]) & mask;
        if (done == 0 && mode_ == Mode::code64 && z_.address_width == 32)
            for (Reg r : {rcx, rsi, rdi})
                if (native_.r[r] == c_.in.r[r] && modelled_.r[r] == (c_.in.r[r] & mask))
                    native_.r[r] = modelled_.r[r];
        const bool compares = compares_strings() || is_any(ZYDIS_MNEMONIC_SCASB, ZYDIS_MNEMONIC_SCASW,
                                                           ZYDIS_MNEMONIC_SCASD, ZYDIS_MNEMONIC_SCASQ);
        if (!compares || done == 0 || !both_fault())
            return;
        // As many as were done, which do not fault.
        Snapshot in = c_.in, out;
        in.r[rcx] = (in.r[rcx] & ~mask) | done;
        const Outcome before = model_.run(c_.code, c_.at, in, out, mode_, c_.layout, stops_);
        if (before.vector == -1 && !((out.flags ^ native_.flags) & kComparedFlags))
            native_.flags = modelled_.flags;
    }

    bool compares_strings() const {
        return is_any(ZYDIS_MNEMONIC_CMPSB, ZYDIS_MNEMONIC_CMPSW, ZYDIS_MNEMONIC_CMPSD, ZYDIS_MNEMONIC_CMPSQ) &&
               z_.meta.category == ZYDIS_CATEGORY_STRINGOP;
    }

    /// What LODS meets at the state of the fault is what the load through rSI meets.
    void compare_of_two_that_fault() {
        const bool same = got_.vector == host_.vector && got_.address == host_.address && got_.error == host_.error;
        if (!compares_strings() || host_.vector < 0 || got_.vector < 0 || same)
            return;
        const std::uint64_t mask = of_width(z_.address_width);
        for (Reg r : {rcx, rsi, rdi})
            if ((native_.r[r] ^ modelled_.r[r]) & mask)
                return;
        Bytes code = c_.code;
        code[static_cast<std::size_t>(z_.length) - 1] = is(ZYDIS_MNEMONIC_CMPSB) ? 0xac : 0xad;
        Snapshot in = c_.in, out;
        for (Reg r : {rcx, rsi, rdi})
            in.r[r] = (in.r[r] & ~mask) | (modelled_.r[r] & mask);
        const Outcome source = model_.run(code, c_.at, in, out, mode_, c_.layout, stops_);
        if (source.vector == host_.vector && source.address == host_.address && source.error == host_.error)
            fault_like_host();
    }

    void long_double_shift() {
        if (!is_any(ZYDIS_MNEMONIC_SHLD, ZYDIS_MNEMONIC_SHRD) || z_.operand_width != 16 || !both_complete())
            return;
        const std::uint64_t count = op_[2].type == ZYDIS_OPERAND_TYPE_IMMEDIATE ? op_[2].imm.value.u : c_.in.r[rcx];
        if ((count & 31) <= 16)
            return;
        native_.flags = (native_.flags & ~Flags::kArithmetic) | (modelled_.flags & Flags::kArithmetic);
        if (in_memory(0))
            take_from_host(address(0), 2);
        else
            native_.r[id(0)] = (native_.r[id(0)] & ~0xffffull) | (modelled_.r[id(0)] & 0xffff);
    }

    void upper_half_of_sse4a() {
        if (is_any(ZYDIS_MNEMONIC_EXTRQ, ZYDIS_MNEMONIC_INSERTQ) && both_complete())
            native_.fx.xmm[id(0)][1] = modelled_.fx.xmm[id(0)][1];
    }

    Mode mode_;
    bool stops_;
    const Case &c_;
    ModelCpu &model_;
    const Outcome &host_;
    Outcome &got_;
    Snapshot &native_, &modelled_;
    ZydisDecodedInstruction z_;
    ZydisDecodedOperand op_[ZYDIS_MAX_OPERAND_COUNT] = {};
};

} // namespace moscope::x86::native
