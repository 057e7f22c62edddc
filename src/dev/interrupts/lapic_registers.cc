// SPDX-License-Identifier: BSD-3-Clause
// The registers of the local APIC (APIC20..APIC530 of the BKDG for family 10h), and the page of the cores' own APICs.
#include "dev/firmware/firmware.hh"
#include "dev/interrupts/lapic.hh"

namespace moscope::dev {

namespace {

constexpr std::uint32_t kVersionWord = 0x8005'0010; // extended space, LVT entries 0..5, version 10h
constexpr std::uint32_t kIcrWritable = 0xCCFFF;
constexpr std::uint32_t kIllegalRegister = 1u << 7; // of the error status

} // namespace

// --- registers ------------------------------------------------------------------------------------------------------

std::uint32_t LocalApic::read(Addr offset) {
    const Tick now = time_.now();
    run_timer(now);
    const auto word = static_cast<unsigned>((offset >> 4) & 7);
    switch (offset & ~Addr{0xF}) {
    case lapic::kId: return std::uint32_t{id_} << 24;
    case lapic::kVersion: return kVersionWord;
    case lapic::kTpr: return tpr_;
    case lapic::kApr: return arbitration_priority();
    case lapic::kPpr: return processor_priority();
    case lapic::kEoi:
    case lapic::kRemoteRead: return 0;
    case lapic::kLdr: return ldr_;
    case lapic::kDfr: return dfr_;
    case lapic::kSvr: return svr_;
    case lapic::kEsr: return esr_;
    case lapic::kIcr: return icr_low_;
    case lapic::kIcrHigh: return icr_high_;
    case lapic::kLvtTimer:
    case lapic::kLvtThermal:
    case lapic::kLvtPerformance:
    case lapic::kLint0:
    case lapic::kLint1:
    case lapic::kLvtError: return lvt_[(offset >> 4) - 0x32];
    case lapic::kInitial: return initial_;
    case lapic::kCurrent: return current_count(now);
    case lapic::kDivide: return divide_;
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
    case lapic::kId: id_ = static_cast<std::uint8_t>(value >> 24); return;
    case lapic::kTpr: tpr_ = static_cast<std::uint8_t>(value); break;
    case lapic::kEoi: end_of_interrupt(highest(isr_)); break;
    case lapic::kLdr: ldr_ = value & 0xFF00'0000; return;
    case lapic::kDfr: dfr_ = value | 0x0FFF'FFFF; return;
    case lapic::kSvr:
        svr_ = value & 0x3FF;
        if (!(svr_ & kSvrEnable))
            for (std::uint32_t &e : lvt_)
                e |= kMasked;
        plan_timer(now);
        break;
    case lapic::kEsr:
        esr_ = errors_;
        errors_ = 0;
        return;
    case lapic::kIcr:
        icr_low_ = value & kIcrWritable;
        send_ipi();
        return;
    case lapic::kIcrHigh: icr_high_ = value & 0xFF00'0000; return;
    case lapic::kLvtTimer:
    case lapic::kLvtThermal:
    case lapic::kLvtPerformance:
    case lapic::kLint0:
    case lapic::kLint1:
    case lapic::kLvtError: write_lvt(static_cast<unsigned>((offset >> 4) - 0x32), value); return;
    case lapic::kInitial:
        initial_ = value;
        restart_timer(now, value);
        return;
    case lapic::kDivide: {
        const std::uint32_t left = current_count(now);
        divide_ = value & 0xB;
        restart_timer(now, left);
        return;
    }
    case lapic::kVersion:
    case lapic::kApr:
    case lapic::kPpr:
    case lapic::kRemoteRead:
    case lapic::kCurrent: // read only
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
