// SPDX-License-Identifier: BSD-3-Clause
// Saving and restoring of the media and x87 state: FXSAVE and FXRSTOR in their 32- and 64-bit forms (AMD 24593
// section 11.4.4), LDMXCSR and STMXCSR, EMMS. With EFER.FFXSR set, the forms of ring 0 in 64-bit mode leave
// the XMM registers out. The error pointers are saved and restored whether or not an exception is pending.
#include "cpu/x86/exec/simd/sse_float.hh"
#include "cpu/x86/exec/x87/x87.hh"

namespace moscope::x86 {

using namespace simd;

namespace {

struct Image {
    std::uint16_t control = 0, status = 0;
    std::uint8_t tags = 0, reserved = 0;
    std::uint16_t opcode = 0;
    std::uint64_t instruction = 0, operand = 0;
    std::uint32_t mxcsr = 0, mxcsr_mask = kMxcsrValid;
    Xmm st[8] = {};
    Xmm xmm[16] = {};
};
static_assert(sizeof(Image) == 416);
constexpr unsigned kArea = 512, kBeforeXmm = 160;

bool available(Core &c) { return !(c.cr0 & (cr0::em | cr0::ts)) || c.raise(exc_nm); }

/// How many XMM registers this execution moves.
unsigned xmm_count(const Core &c) {
    if (!(c.cr4 & cr4::osfxsr) || ((c.efer & efer::ffxsr) && c.code64() && c.cpl == 0))
        return 0;
    return c.code64() ? 16 : 8;
}

bool aligned_area(Core &c, const Op *op, bool write) {
    Addr a;
    return address(c, op, 16, write, a) && (!(a & 15) || c.raise(exc_gp, 0));
}

/// Pieces of 16 bytes; the end is tried first, so that a fault leaves nothing half done.
bool write_area(Core &c, const Op *op, const Image &image, unsigned bytes) {
    if (!try_part<std::uint8_t>(c, op, kArea - 1))
        return false;
    const auto *from = reinterpret_cast<const std::byte *>(&image);
    for (unsigned i = 0; i < bytes; i += 16) {
        Xmm x;
        std::memcpy(&x, from + i, 16);
        if (!store_part(c, op, i, x))
            return false;
    }
    return true;
}

template <bool kWide> const Op *fxsave(Core &c, const Op *op) {
    if (!available(c) || !aligned_area(c, op, true))
        return c.fault_at(op);
    const X87 &f = c.fpu;
    Image image;
    image.control = f.control;
    image.status = f.status;
    image.tags = f.valid;
    image.opcode = f.opcode;
    image.instruction = kWide ? f.instruction : (f.instruction & 0xffffffff) | std::uint64_t{f.instruction_cs} << 32;
    image.operand = kWide ? f.operand : (f.operand & 0xffffffff) | std::uint64_t{f.operand_ds} << 32;
    image.mxcsr = c.mxcsr;
    for (unsigned i = 0; i < 8; ++i) {
        const X87::Reg &r = f.st[(f.top() + i) & 7];
        image.st[i].u64[0] = r.significand;
        image.st[i].u64[1] = r.sign_exponent;
    }
    const unsigned count = xmm_count(c);
    std::memcpy(image.xmm, c.xmm, 16 * count);
    if (!write_area(c, op, image, kBeforeXmm + 16 * count))
        return c.fault_at(op);
    return op + 1;
}

template <bool kWide> const Op *fxrstor(Core &c, const Op *op) {
    std::uint8_t last;
    if (!available(c) || !aligned_area(c, op, false) || !load_part(c, op, kArea - 1, last))
        return c.fault_at(op);
    Image image;
    const unsigned count = xmm_count(c), bytes = kBeforeXmm + 16 * count;
    for (unsigned i = 0; i < bytes; i += 16) {
        Xmm x;
        if (!load_part(c, op, i, x))
            return c.fault_at(op);
        std::memcpy(reinterpret_cast<std::byte *>(&image) + i, &x, 16);
    }
    if ((c.cr4 & cr4::osfxsr) && (image.mxcsr & ~kMxcsrValid)) {
        c.raise(exc_gp, 0);
        return c.fault_at(op);
    }
    X87 &f = c.fpu;
    x87::set_control(f, image.control);
    x87::set_status(f, image.status);
    f.valid = image.tags;
    f.opcode = image.opcode & 0x7ff;
    f.instruction = kWide ? image.instruction : image.instruction & 0xffffffff;
    f.operand = kWide ? image.operand : image.operand & 0xffffffff;
    f.instruction_cs = kWide ? 0 : static_cast<std::uint16_t>(image.instruction >> 32);
    f.operand_ds = kWide ? 0 : static_cast<std::uint16_t>(image.operand >> 32);
    for (unsigned i = 0; i < 8; ++i)
        f.st[(f.top() + i) & 7] = {image.st[i].u64[0], image.st[i].u16[4]};
    if (c.cr4 & cr4::osfxsr)
        c.mxcsr = image.mxcsr;
    std::memcpy(c.xmm, image.xmm, 16 * count);
    return op + 1;
}

const Op *ldmxcsr(Core &c, const Op *op) {
    std::uint32_t x;
    if (!ready(c) || !load_part(c, op, 0, x))
        return c.fault_at(op);
    if (x & ~kMxcsrValid)
        return protection(c, op);
    c.mxcsr = x;
    return op + 1;
}

const Op *stmxcsr(Core &c, const Op *op) { return ready(c) && store_part(c, op, 0, c.mxcsr) ? op + 1 : c.fault_at(op); }

const Op *emms(Core &c, const Op *op) {
    if (!ready_mmx(c))
        return c.fault_at(op);
    c.fpu.valid = 0;
    c.fpu.set_top(0);
    return op + 1;
}

const Form kForms[] = {
    {ZYDIS_MNEMONIC_FXSAVE, fxsave<false>},
    {ZYDIS_MNEMONIC_FXSAVE64, fxsave<true>},
    {ZYDIS_MNEMONIC_FXRSTOR, fxrstor<false>},
    {ZYDIS_MNEMONIC_FXRSTOR64, fxrstor<true>},
    {ZYDIS_MNEMONIC_LDMXCSR, ldmxcsr},
    {ZYDIS_MNEMONIC_STMXCSR, stmxcsr},
    {ZYDIS_MNEMONIC_EMMS, emms},
};
const Group kGroup("media state", kForms);

} // namespace

} // namespace moscope::x86
