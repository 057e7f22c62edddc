// SPDX-License-Identifier: BSD-3-Clause
// The local APIC of a core, in xAPIC mode, with AMD's extended register space: AMD64 Architecture Programmer's
// Manual volume 2, chapter 16, and the registers APIC20..APIC530 of the BKDG for family 10h (AMD 31116). The timer
// counts the 200 MHz reference clock and has no TSC deadline. The LVT entries for thermal and performance events and
// the extended ones are registers only: the model raises none of these events. Priorities are recomputed at each
// change, so there are no spurious interrupts. The device is at FEE0_0000h; if a core sets another base, its MMU
// redirects accesses to that base here (cpu/x86/mmu/paging.cc). dev/interrupts/apic_bus.hh carries the messages.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "dev/device.hh"
#include "dev/interrupts/apic_bus.hh"
#include "dev/irq.hh"
#include "dev/time.hh"

namespace moscope::dev {

/// Offsets of the registers.
namespace lapic {
inline constexpr Addr kId = 0x20, kVersion = 0x30, kTpr = 0x80, kApr = 0x90, kPpr = 0xA0, kEoi = 0xB0,
                      kRemoteRead = 0xC0, kLdr = 0xD0, kDfr = 0xE0, kSvr = 0xF0, kIsr = 0x100, kTmr = 0x180,
                      kIrr = 0x200, kEsr = 0x280, kIcr = 0x300, kIcrHigh = 0x310, kLvtTimer = 0x320,
                      kLvtThermal = 0x330, kLvtPerformance = 0x340, kLint0 = 0x350, kLint1 = 0x360, kLvtError = 0x370,
                      kInitial = 0x380, kCurrent = 0x390, kDivide = 0x3E0;
} // namespace lapic

/// LINT0 and LINT1 are its inputs 0 and 1 as an IrqLine.
class LocalApic final : public InterruptSource, public IrqLine {
  public:
    static constexpr Addr kBase = kRegisters;
    static constexpr Addr kSize = 0x1000;
    static constexpr Clock kReferenceClock{5'000'000, 1}; ///< 200 MHz

    /// `id` is the APIC's identifier at reset (chip * 8 + core in chip on the family).
    LocalApic(EventQueue &queue, const TimeSource &time, ApicBus &bus, CoreSignals &signals, std::uint8_t id,
              bool bootstrap, Clock reference = kReferenceClock);

    /// Called whenever a signal is raised at the core's pins, so that a halted core can be woken.
    void on_raise(std::function<void()> f) { on_raise_ = std::move(f); }

    // The core's interface.
    int acknowledge() override;
    std::uint8_t cr8() const override { return tpr_ >> 4; }
    void set_cr8(std::uint8_t v) override;
    std::uint64_t apic_base() const override { return base_; }
    bool set_apic_base(std::uint64_t) override;
    void init_reset() override;

    // The interrupt bus's interface.
    bool addressed_by(const ApicMessage &) const;
    bool accept(const ApicMessage &);
    /// Enabled in both IA32_APIC_BASE and the spurious-interrupt register.
    bool enabled() const { return (base_ & kBaseEnable) && (svr_ & kSvrEnable); }
    std::uint8_t arbitration_priority() const;
    std::uint8_t id() const { return id_; }

    void set_irq(unsigned lint, bool level) override;

    // Registers, 32 bits each at 16-byte steps.
    std::uint32_t read(Addr offset);
    void write(Addr offset, std::uint32_t value);
    /// Whether the registers are mapped at kBase.
    bool visible() const { return base_ & kBaseEnable; }

    void reset();
    void archive(Archive &);

  private:
    enum Lvt : unsigned { timer, thermal, performance, lint0, lint1, error, extended, kLvts = extended + 4 };
    using Bits = std::array<std::uint32_t, 8>;

    static constexpr std::uint64_t kBaseBootstrap = 1u << 8;
    static constexpr std::uint32_t kSvrEnable = 1u << 8, kMasked = 1u << 16, kPeriodic = 1u << 17;

    static int highest(const Bits &); ///< number of the highest bit set; -1: none
    void reset_registers();
    void raise(CoreSignals::Bit);
    void update();
    int pending_vector() const;
    std::uint8_t processor_priority() const;
    bool ext_int_pending() const;
    void set_error(std::uint32_t bits);

    bool accept_vector(std::uint8_t vector, bool level);
    void end_of_interrupt(int vector);
    void send_ipi();

    void write_lvt(unsigned entry, std::uint32_t value);
    void fire_lvt(unsigned entry);
    void evaluate_lint(unsigned pin, bool rose);

    std::uint32_t read_extended(Addr offset);
    bool write_extended(Addr offset, std::uint32_t value);

    // Timer: expires first after `first_` counts from `start_`, then, if periodic, every `initial_` counts.
    unsigned divider() const;
    std::int64_t counted(Tick now) const;
    std::uint32_t current_count(Tick now) const;
    void restart_timer(Tick now, std::uint32_t first);
    void plan_timer(Tick now);
    void run_timer(Tick now);

    const TimeSource &time_;
    ApicBus &bus_;
    CoreSignals &signals_;
    const std::uint8_t reset_id_;
    const bool bootstrap_;
    const Clock reference_;
    std::function<void()> on_raise_;
    Alarm alarm_;

    std::uint64_t base_ = 0;
    std::uint8_t id_ = 0, tpr_ = 0;
    std::uint32_t ldr_ = 0, dfr_ = 0, svr_ = 0, esr_ = 0, errors_ = 0, icr_low_ = 0, icr_high_ = 0;
    std::uint32_t extended_control_ = 0;
    Bits isr_{}, tmr_{}, irr_{}, enable_{};
    std::array<std::uint32_t, kLvts> lvt_{};
    std::array<bool, 2> pin_{};
    bool ext_int_message_ = false;

    std::uint32_t initial_ = 0, first_ = 0, divide_ = 0;
    Tick start_ = 0, expiry_ = kNever;
};

/// The page FEE0_0000h: an access of a core reaches the local APIC of that core.
class LapicBlock final : public Device {
  public:
    LapicBlock() : Device("lapic") {}
    /// Cores are numbered in the order in which their APICs are added.
    void add(LocalApic &apic) { apics_.push_back(&apic); }

    std::uint64_t read(Requester, unsigned range, Addr offset, unsigned size) override;
    void write(Requester, unsigned range, Addr offset, std::uint64_t value, unsigned size) override;
    void reset() override;
    void archive(Archive &) override;
    void describe(Firmware &) const override;

  private:
    std::vector<LocalApic *> apics_;
};

} // namespace moscope::dev
