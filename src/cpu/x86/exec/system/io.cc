// SPDX-License-Identifier: BSD-3-Clause
// IN, OUT, INS, OUTS with the TSS's I/O permission map (AMD 24593, section 12.2.4).
#include "cpu/x86/decode/lower.hh"
#include "cpu/x86/exec/integer/string_operands.hh"
#include "cpu/x86/mmu/memory.hh"
#include "cpu/x86/system/segment.hh"

namespace moscope::x86 {
namespace {

constexpr unsigned kMapOffset = 0x66; ///< where the TSS holds the map's offset
constexpr unsigned kAtOnce = 512;     ///< elements of a repeated instruction between checks for interrupts

/// False: #GP or a page fault on the map.
bool mapped(Core &c, std::uint16_t port, unsigned size) {
    const unsigned iopl = static_cast<unsigned>((c.flags.system & Flags::iopl) >> 12);
    if (!c.protected_mode() || (c.cpl <= iopl && !c.virtual_8086()))
        return true;
    std::uint16_t map, bits;
    if (!(c.tr.type() & 8) || kMapOffset + 1 > c.tr.limit)
        return c.raise(exc_gp, 0);
    if (!load_system(c, c.tr.base + kMapOffset, map))
        return false;
    const unsigned at = map + port / 8u;
    if (at + 1 > c.tr.limit) // two bytes are read always
        return c.raise(exc_gp, 0);
    if (!load_system(c, c.tr.base + at, bits))
        return false;
    return !(bits >> (port & 7) & ((1u << size) - 1)) || c.raise(exc_gp, 0);
}

bool permitted(Core &c, std::uint16_t port, unsigned size) {
    if (!mapped(c, port, size))
        return false;
    if (__builtin_expect(c.watched & Core::kWatchPort, 0))
        c.watch_port(port, size);
    return true;
}

/// After an access: devices may have asked to stop.
const Op *done(Core &c, const Op *op) { return c.exit == Exit::none ? op + 1 : c.leave_after(op, c.exit); }

template <class T, bool immediate> const Op *input(Core &c, const Op *op) {
    const auto port = static_cast<std::uint16_t>(immediate ? op->imm & 0xff : c.r[rdx]);
    if (!permitted(c, port, sizeof(T)))
        return c.fault_at(op);
    const DeviceAccess access(c);
    set_reg<T>(c, rax * 8, static_cast<T>(c.platform.io_read(c, port, sizeof(T))));
    return done(c, op);
}
template <class T, bool immediate> const Op *output(Core &c, const Op *op) {
    const auto port = static_cast<std::uint16_t>(immediate ? op->imm & 0xff : c.r[rdx]);
    if (!permitted(c, port, sizeof(T)))
        return c.fault_at(op);
    const DeviceAccess access(c);
    c.platform.io_write(c, port, reg<T>(c, rax * 8), sizeof(T));
    return done(c, op);
}

template <class T> bool input_element(Core &c, const Op *op, std::uint16_t port) {
    Addr a;
    // The port is read only if the value can be stored.
    if (!string_address(c, op, rdi, op->dst, sizeof(T), true, a) || !may_store(c, a, sizeof(T)))
        return false;
    T x;
    {
        const DeviceAccess access(c); // ends before the store, which may have to wait for its line
        x = static_cast<T>(c.platform.io_read(c, port, sizeof(T)));
    }
    return store(c, a, x);
}
template <class T> bool output_element(Core &c, const Op *op, std::uint16_t port) {
    Addr a;
    T x;
    if (!string_address(c, op, rsi, op->seg, sizeof(T), false, a) || !load(c, a, x))
        return false;
    const DeviceAccess access(c);
    c.platform.io_write(c, port, x, sizeof(T));
    return true;
}

template <class T, bool in> const Op *string_io(Core &c, const Op *op) {
    const auto port = static_cast<std::uint16_t>(c.r[rdx]);
    constexpr unsigned pointer = in ? rdi : rsi;
    if (!mapped(c, port, sizeof(T)))
        return c.fault_at(op);
    // One element at a time if a trap may follow it.
    const bool singly = (c.flags.system & Flags::tf) || (c.watched & (Core::kWatchData | Core::kWatchPort));
    const std::uint64_t step = (c.flags.system & Flags::df) ? -std::uint64_t{sizeof(T)} : sizeof(T);
    for (unsigned k = 0;; ++k) {
        const std::uint64_t left = op->rep ? string_register(c, op, rcx) : 1;
        if (!left)
            return done(c, op);
        if (k == (singly ? 1 : kAtOnce)) {
            c.extra_cycles += k;
            return c.leave_before(op, Exit::restart);
        }
        if (c.watched & Core::kWatchPort)
            c.watch_port(port, sizeof(T));
        if (!(in ? input_element<T>(c, op, port) : output_element<T>(c, op, port)))
            return c.fault_at(op);
        set_string_register(c, op, pointer, string_register(c, op, pointer) + step);
        if (!op->rep)
            return done(c, op);
        set_string_register(c, op, rcx, left - 1);
        if (c.exit != Exit::none)
            return c.leave_before(op, c.exit);
    }
}

template <bool in, bool immediate> Exec sized(unsigned bytes) {
    switch (bytes) {
    case 1: return in ? input<std::uint8_t, immediate> : output<std::uint8_t, immediate>;
    case 2: return in ? input<std::uint16_t, immediate> : output<std::uint16_t, immediate>;
    default: return in ? input<std::uint32_t, immediate> : output<std::uint32_t, immediate>;
    }
}
template <bool in> Exec lower_port(const Insn &i, Op &op) {
    return i.is_imm(in ? 1 : 0) ? sized<in, true>(op.width) : sized<in, false>(op.width);
}
template <class T, bool in> Exec lower_string(const Insn &i, Op &op) {
    string_segments(i, op);
    return string_io<T, in>;
}

const Form kForms[] = {
    {ZYDIS_MNEMONIC_IN, lower_port<true>, true},
    {ZYDIS_MNEMONIC_OUT, lower_port<false>, true},
    {ZYDIS_MNEMONIC_INSB, lower_string<std::uint8_t, true>, true},
    {ZYDIS_MNEMONIC_INSW, lower_string<std::uint16_t, true>, true},
    {ZYDIS_MNEMONIC_INSD, lower_string<std::uint32_t, true>, true},
    {ZYDIS_MNEMONIC_OUTSB, lower_string<std::uint8_t, false>, true},
    {ZYDIS_MNEMONIC_OUTSW, lower_string<std::uint16_t, false>, true},
    {ZYDIS_MNEMONIC_OUTSD, lower_string<std::uint32_t, false>, true},
};
const Group kGroup("input and output", kForms);

} // namespace
} // namespace moscope::x86
