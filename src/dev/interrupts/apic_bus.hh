// SPDX-License-Identifier: BSD-3-Clause
// The system interrupt bus: carries interrupt messages from local APICs, the IO-APIC and message-signalled
// interrupts to local APICs, and end-of-interrupt messages back. On the family these are HyperTransport interrupt
// packets (AMD 31116, BKDG for family 10h, section 2.9.5); destinations have eight bits (ApicExtId and
// ApicExtBrdCst set), so FFh is the broadcast. A message arrives at the moment it is sent, but for those between local
// APICs where the board says how long they are under way.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "dev/irq.hh"
#include "dev/time.hh"

namespace moscope::dev {

class LocalApic;

/// Delivery modes as the ICR, redirection entries and MSI data encode them.
enum class Delivery : std::uint8_t { fixed, lowest_priority, smi, reserved, nmi, init, startup, ext_int };

struct ApicMessage {
    std::uint8_t destination = 0;
    bool logical = false;
    Delivery mode = Delivery::fixed;
    std::uint8_t vector = 0;
    bool level = false;  ///< trigger mode
    bool assert_ = true; ///< of a level: false takes it away
};

/// Who wants to know that a level-triggered interrupt's service has ended (the IO-APIC).
class EoiListener {
  public:
    virtual ~EoiListener() = default;
    virtual void end_of_interrupt(std::uint8_t vector) = 0;
};

/// Who answers an interrupt-acknowledge cycle for an ExtINT (the 8259 pair).
class ExtIntController {
  public:
    virtual ~ExtIntController() = default;
    virtual std::uint8_t acknowledge_ext_int() = 0;
};

class ApicBus final : public MsiTarget {
  public:
    static constexpr std::uint8_t kBroadcast = 0xFF;

    void attach(LocalApic &apic) { apics_.push_back(&apic); }
    void attach(EoiListener &listener) { listeners_.push_back(&listener); }
    void attach(ExtIntController &pic) { pic_ = &pic; }

    /// Whether some local APIC took it. A destination that is absent has no effect.
    bool deliver(const ApicMessage &message);
    /// From a local APIC, leaving one out if `but` (the shorthand "all but self"): it travels.
    void send(const ApicMessage &message, const LocalApic &from, const LocalApic *but);
    /// How long a message from one local APIC to another is under way; they are numbered as they were attached.
    using Way = std::function<Tick(unsigned from, unsigned to)>;
    void travel(EventQueue &queue, const TimeSource &time, Way way);
    /// What is under way arrives now. Nothing may be under way when a checkpoint is taken.
    void arrive_all() { arrive(kNever); }
    void end_of_interrupt(std::uint8_t vector) {
        for (EoiListener *l : listeners_)
            l->end_of_interrupt(vector);
    }
    void msi(std::uint64_t address, std::uint32_t data) override;

    bool has_ext_int_controller() const { return pic_ != nullptr; }
    std::uint8_t acknowledge_ext_int() { return pic_ ? pic_->acknowledge_ext_int() : 0; }

    const std::vector<LocalApic *> &apics() const { return apics_; }

  private:
    struct UnderWay {
        Tick arrival;
        LocalApic *to;
        ApicMessage message;
    };
    /// Those that take a message: of a lowest-priority one at most one.
    std::vector<LocalApic *> takers(const ApicMessage &, const LocalApic *but) const;
    void arrive(Tick until);

    Way way_;
    const TimeSource *time_ = nullptr;
    std::unique_ptr<Alarm> alarm_;
    std::vector<UnderWay> under_way_; ///< earliest first, of one moment in the order sent
    std::vector<LocalApic *> apics_;
    std::vector<EoiListener *> listeners_;
    ExtIntController *pic_ = nullptr;
};

} // namespace moscope::dev
