// SPDX-License-Identifier: BSD-3-Clause
// The registers of the local APIC (APIC20..APIC530 of the BKDG for family 10h), and the page of the cores' own APICs.
#include "dev/firmware/firmware.hh"
#include "dev/interrupts/lapic.hh"

namespace moscope::dev {

namespace {

constexpr std::uint32_t kVersion = 0x8005'0010; // extended space, LVT entries 0..5, version 10h
constexpr std::uint32_t kIcrWritable = 0xCCFFF;
constexpr std::uint32_t kIllegalRegister = 1u << 7; // of the error status

} // namespace

// --- registers ------------------------------------------------------------------------------------------------------

std::uint32_t LocalApic::read(Addr offset) {
    const Tick now = time_.now();
    run_timer(now);
    const auto word = static_cast<unsigned>((offset >> 4) & 7);
    switch (offset & ~Addr{0xF}) {
    case 0x20: return std::uint32_t{id_} << 24;
    case 0x30: return kVersion;
    case 0x80: return tpr_;
    case 0x90: return arbitration_priority();
    case 0xA0: return processor_priority();
    case 0xB0:
    case 0xC0: return 0;
    case 0xD0: return ldr_;
    case 0xE0: return dfr_;
    case 0xF0: return svr_;
    case 0x280: return esr_;
    case 0x300: return icr_low_;
    case 0x310: return icr_high_;
    case 0x320:
    case 0x330:
    case 0x340:
    case 0x350:
    case 0x360:
    case 0x370: return lvt_[(offset >> 4) - 0x32];
    case 0x380: return initial_;
    case 0x390: return current_count(now);
    case 0x3E0: return divide_;
    default: break;
    }
    if (offset >= 0x100 && offset < 0x180)
        return isr_[word];
    if (offset >= 0x180 && offset < 0x200)
        return tmr_[word];
    if (offset >= 0x200 && offset < 0x280)
        return irr_[word];
    return read_extended(offset);
}

std::uint32_t LocalApic::read_extended(Addr offset) {
    switch (offset & ~Addr{0xF}) {
    case 0x400: // four extended LVT entries; extended identifiers, SEOI and IER are there
        return 0x0004'0007;
    case 0x410: return extended_control_;
    case 0x420: return 0;
    case 0x500:
    case 0x510:
    case 0x520:
    case 0x530: return lvt_[extended + (offset >> 4) - 0x50];
    default:
        if (offset >= 0x480 && offset < 0x500)
            return enable_[(offset >> 4) & 7];
        set_error(kIllegalRegister);
        return 0;
    }
}

void LocalApic::write(Addr offset, std::uint32_t value) {
    const Tick now = time_.now();
    run_timer(now);
    switch (offset & ~Addr{0xF}) {
    case 0x20: id_ = static_cast<std::uint8_t>(value >> 24); return;
    case 0x80: tpr_ = static_cast<std::uint8_t>(value); break;
    case 0xB0: end_of_interrupt(highest(isr_)); break;
    case 0xD0: ldr_ = value & 0xFF00'0000; return;
    case 0xE0: dfr_ = value | 0x0FFF'FFFF; return;
    case 0xF0:
        svr_ = value & 0x3FF;
        if (!(svr_ & kSvrEnable))
            for (std::uint32_t &e : lvt_)
                e |= kMasked;
        plan_timer(now);
        break;
    case 0x280:
        esr_ = errors_;
        errors_ = 0;
        return;
    case 0x300:
        icr_low_ = value & kIcrWritable;
        send_ipi();
        return;
    case 0x310: icr_high_ = value & 0xFF00'0000; return;
    case 0x320:
    case 0x330:
    case 0x340:
    case 0x350:
    case 0x360:
    case 0x370: write_lvt(static_cast<unsigned>((offset >> 4) - 0x32), value); return;
    case 0x380:
        initial_ = value;
        restart_timer(now, value);
        return;
    case 0x3E0: {
        const std::uint32_t left = current_count(now);
        divide_ = value & 0xB;
        restart_timer(now, left);
        return;
    }
    case 0x30:
    case 0x90:
    case 0xA0:
    case 0xC0:
    case 0x390: // read only
        return;
    default:
        if (offset >= 0x100 && offset < 0x280) // read only
            return;
        if (!write_extended(offset, value))
            set_error(kIllegalRegister);
        break;
    }
    update();
}

bool LocalApic::write_extended(Addr offset, std::uint32_t value) {
    switch (offset & ~Addr{0xF}) {
    case 0x400: return true;
    case 0x410: extended_control_ = value & 7; return true;
    case 0x420: // specific end of interrupt
        if (extended_control_ & 2)
            end_of_interrupt(static_cast<int>(value & 0xFF));
        return true;
    case 0x500:
    case 0x510:
    case 0x520:
    case 0x530: write_lvt(static_cast<unsigned>(extended + (offset >> 4) - 0x50), value); return true;
    default:
        if (offset < 0x480 || offset >= 0x500)
            return false;
        enable_[(offset >> 4) & 7] = value;
        return true;
    }
}

// --- the page -----------------------------------------------------------------------------------------------------

std::uint64_t LapicBlock::read(Requester who, unsigned, Addr offset, unsigned size) {
    if (who >= apics_.size() || !apics_[who]->visible())
        return ~0ull;
    const auto shift = static_cast<unsigned>(offset & 0xF) * 8;
    if (shift >= 32) // only the low four bytes of each 16 are there
        return 0;
    return (apics_[who]->read(offset & 0xFF0) >> shift) & (size >= 4 ? 0xFFFF'FFFF : (1u << (8 * size)) - 1);
}

void LapicBlock::write(Requester who, unsigned, Addr offset, std::uint64_t value, unsigned size) {
    if (who < apics_.size() && apics_[who]->visible() && (offset & 0xF) == 0 && size >= 4)
        apics_[who]->write(offset & 0xFF0, static_cast<std::uint32_t>(value));
}

void LapicBlock::reset() {
    for (LocalApic *a : apics_)
        a->reset();
}

void LapicBlock::describe(Firmware &f) const {
    f.local_apic_address = LocalApic::kBase;
    f.local_nmis.push_back({.lint = 1});
    f.reserve(LocalApic::kBase, LocalApic::kSize);
}

void LapicBlock::archive(Archive &a) {
    a.section("lapic");
    for (LocalApic *apic : apics_)
        apic->archive(a);
}

} // namespace moscope::dev
