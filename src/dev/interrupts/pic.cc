// SPDX-License-Identifier: BSD-3-Clause
#include "dev/interrupts/pic.hh"

#include "dev/devices.hh"
#include "dev/interrupts/lapic.hh"

namespace moscope::dev {

namespace {

constexpr std::uint8_t kElcrWritable[] = {0xF8, 0xDE}; // timer, keyboard, cascade, clock, coprocessor are edges
constexpr int kSpurious = 7;

constexpr std::uint8_t bit(int n) { return static_cast<std::uint8_t>(1u << (n & 7)); }

} // namespace

// --- one chip -----------------------------------------------------------------------------------------------------

void PicPair::Chip::set_wire(unsigned input, bool on) {
    const std::uint8_t b = bit(static_cast<int>(input));
    const bool was = wires & b;
    wires = static_cast<std::uint8_t>(on ? wires | b : wires & ~b);
    if (level(input))
        requests = static_cast<std::uint8_t>(on ? requests | b : requests & ~b);
    else if (on && !was)
        requests |= b;
}

/// A level has no latch: its request is the state of its wire.
void PicPair::Chip::follow_levels() {
    const std::uint8_t levels = level_mode ? 0xFF : level_inputs;
    requests = static_cast<std::uint8_t>((requests & ~levels) | (wires & levels));
}

int PicPair::Chip::highest(std::uint8_t bits) const {
    for (int i = 1; i <= 8; ++i)
        if (bits & bit(lowest + i))
            return (lowest + i) & 7;
    return -1;
}

int PicPair::Chip::pending(bool is_master) const {
    const int wanted = highest(static_cast<std::uint8_t>(requests & ~mask));
    if (wanted < 0)
        return -1;
    std::uint8_t serving = in_service;
    if (special_mask)
        serving = static_cast<std::uint8_t>(serving & ~mask);
    if (special_nested && is_master)
        serving = static_cast<std::uint8_t>(serving & ~bit(kCascade));
    const int current = highest(serving);
    const auto rank = [this](int i) { return (i - lowest - 1) & 7; };
    return current < 0 || rank(wanted) < rank(current) ? wanted : -1;
}

std::uint8_t PicPair::Chip::acknowledge(int input) {
    if (input < 0)
        return static_cast<std::uint8_t>(vector_base + kSpurious);
    if (!level(static_cast<unsigned>(input)))
        requests = static_cast<std::uint8_t>(requests & ~bit(input));
    if (!auto_eoi)
        in_service |= bit(input);
    else if (rotate_on_auto_eoi)
        lowest = static_cast<std::uint8_t>(input);
    return static_cast<std::uint8_t>(vector_base + input);
}

void PicPair::Chip::end(int input) {
    if (input >= 0)
        in_service = static_cast<std::uint8_t>(in_service & ~bit(input));
}

// --- the pair -----------------------------------------------------------------------------------------------------

PicPair::PicPair(IrqLine &output, unsigned output_input)
    : IsaDevice("pic", {.object = "PIC",
                        .id = "PNP0000",
                        .ports = {{kMasterPort, kSize}, {kSlavePort, kSize}, {kElcrPort, kSize}},
                        .irq = kCascade}),
      output_(output),
      output_input_(output_input) {
    reset();
}

void PicPair::reset() {
    for (Chip &c : chips_) {
        const std::uint8_t wires = c.wires;
        c = Chip{};
        c.wires = wires;
        c.mask = 0xFF; // nothing gets through before it is initialised
    }
    update();
}

void PicPair::archive(Archive &a) {
    a.section(name());
    a(chips_[0], chips_[1]);
}

void PicPair::update() {
    Chip &master = chips_[0];
    const bool slave = chips_[1].pending(false) >= 0;
    // The slave's output drops during each acknowledge cycle, so the edge-sensitive cascade sees every request.
    master.wires = static_cast<std::uint8_t>(slave ? master.wires | bit(kCascade) : master.wires & ~bit(kCascade));
    master.requests =
        static_cast<std::uint8_t>(slave ? master.requests | bit(kCascade) : master.requests & ~bit(kCascade));
    output_.set_irq(output_input_, master.pending(true) >= 0);
}

void PicPair::set_irq(unsigned input, bool level) {
    if (input >= kInputs || input == kCascade)
        return;
    chips_[input / 8].set_wire(input % 8, level);
    update();
}

std::uint8_t PicPair::acknowledge_ext_int() {
    const int input = chips_[0].pending(true);
    std::uint8_t vector = chips_[0].acknowledge(input);
    if (input == kCascade)
        vector = chips_[1].acknowledge(chips_[1].pending(false));
    update();
    return vector;
}

std::uint8_t PicPair::poll(Chip &c) {
    c.poll = false;
    const int input = c.pending(&c == &chips_[0]);
    if (input >= 0)
        c.acknowledge(input);
    return static_cast<std::uint8_t>(input < 0 ? 0 : 0x80 | input);
}

std::uint8_t PicPair::read8(unsigned range, Addr offset) {
    if (range == 2)
        return chips_[offset & 1].level_inputs;
    Chip &c = chips_[range & 1];
    std::uint8_t value;
    if (c.poll)
        value = poll(c);
    else if (offset & 1)
        value = c.mask;
    else
        value = c.read_in_service ? c.in_service : c.requests;
    update();
    return value;
}

void PicPair::write8(unsigned range, Addr offset, std::uint8_t value) {
    if (range == 2) {
        chips_[offset & 1].level_inputs = value & kElcrWritable[offset & 1];
        chips_[offset & 1].follow_levels();
    } else if (offset & 1)
        data(chips_[range & 1], value);
    else
        command(chips_[range & 1], value);
    update();
}

void PicPair::command(Chip &c, std::uint8_t value) {
    if (value & 0x10) { // ICW1
        const std::uint8_t wires = c.wires, elcr = c.level_inputs;
        c = Chip{};
        c.wires = wires;
        c.level_inputs = elcr;
        c.needs_icw4 = value & 1;
        c.single = value & 2;
        c.level_mode = value & 8;
        c.init_step = 2;
        c.follow_levels(); // edges are forgotten
        return;
    }
    if (value & 8) { // OCW3
        if (value & 4)
            c.poll = true;
        if (value & 2)
            c.read_in_service = value & 1;
        if (value & 0x40)
            c.special_mask = value & 0x20;
        return;
    }
    const int given = value & 7; // OCW2
    const int current = c.highest(c.special_mask ? static_cast<std::uint8_t>(c.in_service & ~c.mask) : c.in_service);
    switch (value >> 5) {
    case 0:
    case 4: c.rotate_on_auto_eoi = value & 0x80; break;
    case 1: // non-specific end
        c.end(current);
        break;
    case 3: // specific end
        c.end(given);
        break;
    case 5: // non-specific end and rotate
        c.end(current);
        if (current >= 0)
            c.lowest = static_cast<std::uint8_t>(current);
        break;
    case 6: // set priority
        c.lowest = static_cast<std::uint8_t>(given);
        break;
    case 7: // specific end and rotate
        c.end(given);
        c.lowest = static_cast<std::uint8_t>(given);
        break;
    default: break;
    }
}

void PicPair::data(Chip &c, std::uint8_t value) {
    switch (c.init_step) {
    case 2:
        c.vector_base = value & 0xF8;
        c.init_step = c.single ? (c.needs_icw4 ? 4 : 0) : 3;
        break;
    case 3: // which inputs have slaves: fixed on a PC
        c.init_step = c.needs_icw4 ? 4 : 0;
        break;
    case 4:
        c.auto_eoi = value & 2;
        c.special_nested = value & 0x10;
        c.init_step = 0;
        break;
    default: c.mask = value; break;
    }
}

namespace {

const RegisteredDevice registered(30, "pic", [](Devices &d) {
    auto &pic = d.add<PicPair>(*d.apic_bus.apics().front(), 0u); // LINT0 of the bootstrap core
    pic.map(d.ports);
    d.apic_bus.attach(static_cast<ExtIntController &>(pic));
    d.provide_isa(d.own<IsaInterrupts>(pic, d.gsi()));
});

} // namespace

} // namespace moscope::dev
