// SPDX-License-Identifier: BSD-3-Clause
#include "dev/interrupts/apic_bus.hh"

#include <algorithm>

#include "dev/interrupts/lapic.hh"

namespace moscope::dev {

std::vector<LocalApic *> ApicBus::takers(const ApicMessage &message, const LocalApic *but) const {
    if (message.mode == Delivery::lowest_priority) {
        // Of the addressed APICs, the one with the lowest arbitration priority takes it; among equals, the first.
        LocalApic *best = nullptr;
        for (LocalApic *a : apics_)
            if (a != but && a->addressed_by(message) && a->enabled() &&
                (!best || a->arbitration_priority() < best->arbitration_priority()))
                best = a;
        return best ? std::vector{best} : std::vector<LocalApic *>{};
    }
    std::vector<LocalApic *> all;
    for (LocalApic *a : apics_)
        if (a != but && a->addressed_by(message))
            all.push_back(a);
    return all;
}

bool ApicBus::deliver(const ApicMessage &message) {
    bool taken = false;
    for (LocalApic *a : takers(message, nullptr))
        taken |= a->accept(message);
    return taken;
}

void ApicBus::travel(EventQueue &queue, const TimeSource &time, Way way) {
    way_ = std::move(way);
    time_ = &time;
    alarm_ = std::make_unique<Alarm>(queue, "apic-bus", [this](Tick now) { arrive(now); });
}

void ApicBus::send(const ApicMessage &message, const LocalApic &from, const LocalApic *but) {
    const auto number = [this](const LocalApic *a) {
        return static_cast<unsigned>(std::find(apics_.begin(), apics_.end(), a) - apics_.begin());
    };
    for (LocalApic *to : takers(message, but)) {
        const Tick way = way_ ? way_(number(&from), number(to)) : 0;
        if (way == 0) {
            to->accept(message);
            continue;
        }
        const Tick arrival = time_->now() + way;
        const auto later = std::upper_bound(under_way_.begin(), under_way_.end(), arrival,
                                            [](Tick t, const UnderWay &u) { return t < u.arrival; });
        under_way_.insert(later, {arrival, to, message});
    }
    if (!under_way_.empty())
        alarm_->set(under_way_.front().arrival);
}

void ApicBus::arrive(Tick until) {
    while (!under_way_.empty() && under_way_.front().arrival <= until) {
        const UnderWay first = under_way_.front();
        under_way_.erase(under_way_.begin());
        first.to->accept(first.message);
    }
    if (alarm_)
        alarm_->set(under_way_.empty() ? kNever : under_way_.front().arrival);
}

void ApicBus::msi(std::uint64_t address, std::uint32_t data) {
    ApicMessage m;
    m.destination = static_cast<std::uint8_t>(address >> 12);
    m.logical = address & 4;
    m.mode = static_cast<Delivery>((data >> 8) & 7);
    m.vector = static_cast<std::uint8_t>(data);
    m.level = data & 0x8000;
    m.assert_ = !m.level || (data & 0x4000);
    if (m.mode != Delivery::startup && m.mode != Delivery::reserved) // no such messages from devices
        deliver(m);
}

} // namespace moscope::dev
