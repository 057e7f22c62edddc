// SPDX-License-Identifier: BSD-3-Clause
#include "dev/timers/pit.hh"

#include "dev/devices.hh"

namespace moscope::dev {

namespace {

constexpr std::uint8_t kGate2 = 1;
constexpr std::int64_t kRefreshEdges = 18; // the refresh toggle of port 61h changes every 15.1 us

std::uint32_t from_bcd(std::uint32_t v) {
    return (v & 15) + 10 * (v >> 4 & 15) + 100 * (v >> 8 & 15) + 1000 * (v >> 12 & 15);
}
std::uint32_t to_bcd(std::uint32_t v) { return v % 10 | v / 10 % 10 << 4 | v / 100 % 10 << 8 | v / 1000 % 10 << 12; }

} // namespace

// --- one counter --------------------------------------------------------------------------------------------------

void Pit::Channel::advance(std::int64_t edge) {
    if (next != 0 && periodic() && counting && held < 0 && edge >= start + count) {
        start += count;
        count = next;
        next = 0;
    }
}

std::int64_t Pit::Channel::done(std::int64_t edge) const { return held >= 0 ? held : edge - start; }

bool Pit::Channel::out(std::int64_t edge) const {
    if (!counting)
        return mode != 0;
    const std::int64_t d = done(edge), n = count;
    switch (mode) {
    case 0: return d >= n;
    case 1: return d < 0 || d >= n;
    case 2: return !gate || d < 0 || d % n != n - 1;
    case 3: return !gate || d < 0 || d % n < (n + 1) / 2;
    default: return d != n;
    }
}

std::uint16_t Pit::Channel::value(std::int64_t edge) const {
    std::int64_t v = count;
    if (counting && done(edge) > 0) {
        const std::int64_t d = done(edge), n = count;
        if (mode == 2) {
            v = n - d % n;
        } else if (mode == 3) {
            const std::int64_t r = d % n, half = (n + 1) / 2;
            v = (n & ~std::int64_t{1}) - 2 * (r < half ? r : r - half);
        } else {
            const std::int64_t modulus = bcd ? 10000 : 65536;
            v = ((n - d) % modulus + modulus) % modulus; // counts on below zero
        }
    }
    return static_cast<std::uint16_t>(bcd ? to_bcd(static_cast<std::uint32_t>(v)) : v);
}

std::int64_t Pit::Channel::next_change(std::int64_t edge) const {
    if (!counting || held >= 0)
        return -1;
    const std::int64_t d = done(edge), n = count;
    if (periodic()) {
        const std::int64_t high = mode == 2 ? n - 1 : (n + 1) / 2;
        if (d < 0)
            return start + high;
        return edge - d % n + (d % n < high ? high : n);
    }
    if (mode == 1 && d < 0)
        return start;
    if (d < n)
        return start + n;
    return mode >= 4 && d == n ? start + n + 1 : -1;
}

void Pit::Channel::program(std::uint8_t control) {
    mode = (control >> 1) & 7;
    if (mode > 5)
        mode &= 3; // modes 2 and 3 ignore the third bit
    access = (control >> 4) & 3;
    bcd = control & 1;
    counting = write_high = read_high = latched = status_latched = false;
    count = next = 0;
    start = 0;
    held = -1;
}

void Pit::Channel::load(std::uint32_t raw, std::int64_t edge) {
    std::uint32_t n = bcd ? from_bcd(raw) % 10000 : raw & 0xFFFF;
    if (n == 0)
        n = bcd ? 10000 : 65536;
    if (periodic() && n == 1)
        n = 2; // 1 is illegal there
    if (triggered()) {
        next = n;
        return;
    }
    if (periodic() && counting && held < 0 && edge >= start) { // goes on to the end of its period
        advance(edge);
        start += (edge - start) / count * count;
        next = n;
        return;
    }
    count = n;
    next = 0;
    counting = true;
    start = edge + 1;
    held = gate ? -1 : 0;
}

void Pit::Channel::set_gate(bool level, std::int64_t edge) {
    if (gate == level)
        return;
    advance(edge);
    gate = level;
    if (triggered()) {
        if (level && (next || count)) {
            count = next ? next : count;
            next = 0;
            counting = true;
            start = edge + 1;
        }
        return;
    }
    if (!counting)
        return;
    if (!level) {
        held = std::max<std::int64_t>(done(edge), 0);
    } else if (periodic()) {
        count = next ? next : count;
        next = 0;
        held = -1;
        start = edge + 1;
    } else {
        start = edge - held;
        held = -1;
    }
}

void Pit::Channel::latch_count(std::int64_t edge) {
    if (!latched)
        latch = value(edge);
    latched = true;
}

void Pit::Channel::latch_status(std::int64_t edge) {
    const bool null_count = !counting || next != 0 || (held < 0 && edge < start);
    if (!status_latched)
        status = static_cast<std::uint8_t>((out(edge) ? 0x80 : 0) | (null_count ? 0x40 : 0) | access << 4 | mode << 1 |
                                           (bcd ? 1 : 0));
    status_latched = true;
}

std::uint8_t Pit::Channel::read_byte(std::int64_t edge) {
    if (status_latched) {
        status_latched = false;
        return status;
    }
    const std::uint16_t v = latched ? latch : value(edge);
    const bool high = access == 2 || (access == 3 && read_high);
    if (access == 3)
        read_high = !read_high;
    if (access != 3 || high)
        latched = false;
    return static_cast<std::uint8_t>(high ? v >> 8 : v);
}

void Pit::Channel::write_byte(std::uint8_t value, std::int64_t edge) {
    if (access == 1) {
        load(value, edge);
    } else if (access == 2) {
        load(std::uint32_t{value} << 8, edge);
    } else if (!write_high) {
        low_byte = value;
        write_high = true;
        if (mode == 0) // stops until the second byte
            counting = false;
    } else {
        write_high = false;
        load(low_byte | std::uint32_t{value} << 8, edge);
    }
}

// --- the device ---------------------------------------------------------------------------------------------------

Pit::Pit(EventQueue &queue, const TimeSource &time, IrqLine &irq, unsigned input)
    : IsaDevice("pit",
                {.object = "TMR", .id = "PNP0100", .ports = {{kPort, 4}, {kControlPort, 1, false}}, .irq = kIrq}),
      time_(time),
      irq_(irq),
      input_(input),
      alarm_(queue, "pit", [this](Tick t) { run_to(t); }) {
    reset();
}

void Pit::reset() {
    channels_ = {};
    channels_[2].gate = false;
    control_ = 0;
    drive(0);
}

void Pit::archive(Archive &a) {
    a.section(name());
    a(channels_[0], channels_[1], channels_[2], control_, change_);
    if (a.loading()) {
        for (Channel &c : channels_)
            c.count = c.counting && c.count == 0 ? 1 : c.count;
        alarm_.set(change_);
    }
}

void Pit::drive(std::int64_t edge) {
    Channel &c = channels_[0];
    c.advance(edge);
    irq_.set_irq(input_, c.out(edge));
    const std::int64_t next = c.next_change(edge);
    change_ = next < 0 ? kNever : edge_or_never(kPitClock, next);
    alarm_.set(change_);
}

void Pit::run_to(Tick now) {
    while (change_ <= now)
        drive(edges_until(kPitClock, change_));
    alarm_.set(change_);
}

std::uint8_t Pit::read8(unsigned range, Addr offset) {
    const Tick now = time_.now();
    run_to(now);
    const std::int64_t edge = edges_until(kPitClock, now);
    for (Channel &c : channels_)
        c.advance(edge);
    if (range == 1)
        return static_cast<std::uint8_t>((control_ & 0xF) | (edge / kRefreshEdges & 1) << 4 |
                                         (channels_[2].out(edge) ? 0x20 : 0));
    return (offset & 3) == 3 ? 0xFF : channels_[offset & 3].read_byte(edge);
}

void Pit::write8(unsigned range, Addr offset, std::uint8_t value) {
    const Tick now = time_.now();
    run_to(now);
    const std::int64_t edge = edges_until(kPitClock, now);
    for (Channel &c : channels_)
        c.advance(edge);
    if (range == 1) {
        control_ = value & 0xF;
        channels_[2].set_gate(value & kGate2, edge);
    } else if ((offset & 3) != 3) {
        channels_[offset & 3].write_byte(value, edge);
    } else if (value >> 6 == 3) { // read-back
        for (unsigned i = 0; i < 3; ++i)
            if (value & (2u << i)) {
                if (!(value & 0x20))
                    channels_[i].latch_count(edge);
                if (!(value & 0x10))
                    channels_[i].latch_status(edge);
            }
    } else if ((value & 0x30) == 0) {
        channels_[value >> 6].latch_count(edge);
    } else {
        channels_[value >> 6].program(value);
    }
    drive(edge);
}

namespace {

const RegisteredDevice registered(40, "pit",
                                  [](Devices &d) { d.add<Pit>(d.queue, d.time, d.isa(), Pit::kIrq).map(d.ports); });

} // namespace

} // namespace moscope::dev
