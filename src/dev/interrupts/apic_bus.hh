// SPDX-License-Identifier: BSD-3-Clause
// The system interrupt bus: carries interrupt messages from local APICs, the IO-APIC and message-signalled
// interrupts to local APICs, and end-of-interrupt messages back. On the family these are HyperTransport interrupt
// packets (AMD 31116, BKDG for family 10h, section 2.9.5); destinations have eight bits (ApicExtId and
// ApicExtBrdCst set), so FFh is the broadcast. Messages arrive at the tick at which they are sent, except messages
// between local APICs on a board that sets their latency (`travel`).
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
    bool assert_ = true; ///< for a level: false de-asserts it
};

/// A receiver of end-of-interrupt messages for level-triggered interrupts (the IO-APIC).
class EoiListener {
  public:
    virtual ~EoiListener() = default;
    virtual void end_of_interrupt(std::uint8_t vector) = 0;
};

/// The controller that answers the interrupt-acknowledge cycle of an ExtINT (the 8259 pair).
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

    /// Delivers a message at once. Returns whether a local APIC accepted it; an absent destination has no effect.
    bool deliver(const ApicMessage &message);
    /// Sends from a local APIC, with the latency that `travel` set; `but` is excluded (the shorthand "all but self").
    void send(const ApicMessage &message, const LocalApic &from, const LocalApic *but);
    /// Latency of a message from one local APIC to another; they are numbered in the order of attachment.
    using Way = std::function<Tick(unsigned from, unsigned to)>;
    void travel(EventQueue &queue, const TimeSource &time, Way way);
    /// Delivers all messages in flight at once: none may be in flight when a checkpoint is taken.
    void arrive_all() { arrive(kNever); }
    bool in_flight() const { return !under_way_.empty(); }
    void end_of_interrupt(std::uint8_t vector) {
        for (EoiListener *l : listeners_)
            l->end_of_interrupt(vector);
    }
    void msi(std::uint64_t address, std::uint32_t data) override;

    std::uint8_t acknowledge_ext_int() { return pic_ ? pic_->acknowledge_ext_int() : 0; }

    const std::vector<LocalApic *> &apics() const { return apics_; }

  private:
    struct UnderWay {
        Tick arrival;
        LocalApic *to;
        ApicMessage message;
    };
    /// The local APICs that accept a message; at most one for lowest priority.
    std::vector<LocalApic *> takers(const ApicMessage &, const LocalApic *but) const;
    void arrive(Tick until);

    Way way_;
    const TimeSource *time_ = nullptr;
    std::unique_ptr<Alarm> alarm_;
    std::vector<UnderWay> under_way_; ///< by arrival, then in the order of sending
    std::vector<LocalApic *> apics_;
    std::vector<EoiListener *> listeners_;
    ExtIntController *pic_ = nullptr;
};

} // namespace moscope::dev
