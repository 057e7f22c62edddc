// SPDX-License-Identifier: BSD-3-Clause
#include "dev/serial/uart16550.hh"

#include "dev/devices.hh"

namespace moscope::dev {

namespace {

enum Register : unsigned {
    kData,
    kInterruptEnable,
    kInterruptId, // written: FIFO control
    kLineControl,
    kModemControl,
    kLineStatus,
    kModemStatus,
    kScratch
};

constexpr std::uint8_t kRxAvailable = 1, kTxEmpty = 2, kRxLine = 4, kModem = 8;                // IER
constexpr std::uint8_t kDataReady = 0x01, kOverrun = 0x02, kHoldingEmpty = 0x20, kIdle = 0x40; // LSR
constexpr std::uint8_t kDtr = 1, kRts = 2, kOut1 = 4, kOut2 = 8, kLoop = 0x10;                 // MCR
constexpr std::uint8_t kCts = 0x10, kDsr = 0x20, kRing = 0x40, kCarrier = 0x80;                // MSR
constexpr std::uint8_t kDivisorAccess = 0x80;                                                  // LCR
constexpr std::size_t kLineLimit = 1u << 20; // characters that wait on the line at most

constexpr Tick kSixteenthBit = kTicksPerSecond / 1'843'200; // of the 1.8432 MHz clock

} // namespace

Uart16550::Uart16550(EventQueue &queue, const TimeSource &time, IrqLine &irq, unsigned input, Output output,
                     Config config)
    : IsaDevice("uart16550", {.object = "COM1", .id = "PNP0501", .ports = {{kPort, 8}}, .irq = kIrq, .unit = 1}),
      time_(time),
      irq_(irq),
      input_(input),
      output_(std::move(output)),
      config_(config),
      alarm_(queue, "uart16550", [this](Tick t) { ring(t); }) {
    reset();
}

Uart16550::Uart16550(EventQueue &queue, const TimeSource &time, IrqLine &irq, unsigned input, Output output)
    : Uart16550(queue, time, irq, input, std::move(output), Config{}) {}

void Uart16550::reset() {
    ier_ = lcr_ = mcr_ = errors_ = modem_delta_ = trigger_code_ = scratch_ = 0;
    divisor_ = 1;
    fifo_enabled_ = empty_pending_ = timeout_pending_ = false;
    received_.clear();
    sending_ = 0;
    sent_ = timeout_ = kNever;
    plan();
    update_irq();
}

void Uart16550::archive(Archive &a) {
    a.section(name());
    a(ier_, lcr_, mcr_, scratch_, errors_, modem_delta_, trigger_code_, divisor_, fifo_enabled_, empty_pending_,
      timeout_pending_, received_, sending_, sent_, arrival_, timeout_, line_);
    if (a.loading()) {
        if (sending_ == 0)
            sent_ = kNever;
        if (line_.empty())
            arrival_ = kNever;
        plan();
    }
}

Tick Uart16550::character_time() const {
    if (config_.character_time > 0)
        return config_.character_time;
    const unsigned bits = 1 + 5 + (lcr_ & 3) + (lcr_ & 8 ? 1 : 0) + (lcr_ & 4 ? 2 : 1);
    return kSixteenthBit * 16 * (divisor_ ? divisor_ : 0x10000) * bits;
}

unsigned Uart16550::trigger() const {
    static constexpr unsigned levels[] = {1, 4, 8, 14};
    return fifo_enabled_ ? levels[trigger_code_ & 3] : 1;
}

// --- time ---------------------------------------------------------------------------------------------------------

void Uart16550::plan() { alarm_.set(std::min({sent_, arrival_, timeout_})); }

void Uart16550::ring(Tick now) {
    run_to(now);
    plan();
    update_irq();
}

void Uart16550::run_to(Tick now) {
    while (sent_ <= now) {
        if (--sending_ == 0) {
            sent_ = kNever;
            empty_pending_ = true;
        } else {
            sent_ += character_time();
        }
    }
    while (arrival_ <= now) {
        const Tick at = arrival_;
        if (config_.flow_control && received_.size() >= capacity()) { // continues when there is room
            arrival_ = kNever;
            break;
        }
        const std::uint8_t byte = line_.front();
        line_.pop_front();
        arrival_ = line_.empty() ? kNever : at + character_time();
        if (!(mcr_ & kLoop)) // in loop-back mode the input pin is disconnected
            receive(byte, at);
    }
    if (timeout_ <= now) {
        timeout_ = kNever;
        timeout_pending_ = fifo_enabled_ && !received_.empty();
    }
}

void Uart16550::push(std::string_view bytes) {
    const Tick now = time_.now();
    run_to(now);
    for (const char c : bytes)
        if (line_.size() < kLineLimit)
            line_.push_back(static_cast<std::uint8_t>(c));
    if (arrival_ == kNever && !line_.empty())
        arrival_ = now + character_time();
    plan();
    update_irq();
}

void Uart16550::receive(std::uint8_t byte, Tick now) {
    if (received_.size() >= capacity()) {
        errors_ |= kOverrun;
        if (!fifo_enabled_) // the holding register is overwritten, a full FIFO is not
            received_.back() = byte;
        return;
    }
    received_.push_back(byte);
    timeout_ = fifo_enabled_ ? now + 4 * character_time() : kNever;
}

void Uart16550::transmit(std::uint8_t byte, Tick now) {
    empty_pending_ = false;
    if (sending_ >= capacity()) // full: lost
        return;
    if (sending_++ == 0)
        sent_ = now + character_time();
    if (mcr_ & kLoop)
        receive(byte, now);
    else if (output_)
        output_(byte);
}

// --- status -------------------------------------------------------------------------------------------------------

std::uint8_t Uart16550::line_status() const {
    return static_cast<std::uint8_t>((received_.empty() ? 0 : kDataReady) | errors_ |
                                     (sending_ == 0 ? kHoldingEmpty | kIdle : 0));
}

std::uint8_t Uart16550::modem_lines() const {
    if (!(mcr_ & kLoop))
        return kCts | kDsr | kCarrier;
    return static_cast<std::uint8_t>((mcr_ & kRts ? kCts : 0) | (mcr_ & kDtr ? kDsr : 0) | (mcr_ & kOut1 ? kRing : 0) |
                                     (mcr_ & kOut2 ? kCarrier : 0));
}

void Uart16550::modem_changed(std::uint8_t before) {
    const std::uint8_t after = modem_lines();
    const auto changed = static_cast<std::uint8_t>(before ^ after);
    // RI reports its trailing edge only.
    const auto counts = static_cast<std::uint8_t>((changed & ~kRing) | (before & ~after & kRing));
    modem_delta_ |= counts >> 4;
}

unsigned Uart16550::interrupt_id() const {
    if ((ier_ & kRxLine) && errors_)
        return 6;
    if (ier_ & kRxAvailable) {
        if (received_.size() >= trigger())
            return 4;
        if (timeout_pending_)
            return 0xC;
    }
    if ((ier_ & kTxEmpty) && empty_pending_)
        return 2;
    if ((ier_ & kModem) && modem_delta_)
        return 0;
    return 1;
}

void Uart16550::update_irq() { irq_.set_irq(input_, interrupt_id() != 1 && (mcr_ & (kOut2 | kLoop)) == kOut2); }

// --- registers ----------------------------------------------------------------------------------------------------

std::uint8_t Uart16550::read8(unsigned, Addr offset) {
    const Tick now = time_.now();
    run_to(now);
    std::uint8_t value = 0xFF;
    switch (offset & 7) {
    case kData:
        if (lcr_ & kDivisorAccess) {
            value = static_cast<std::uint8_t>(divisor_);
            break;
        }
        value = 0;
        if (!received_.empty()) {
            value = received_.front();
            received_.pop_front();
        }
        timeout_pending_ = false;
        timeout_ = fifo_enabled_ && !received_.empty() ? now + 4 * character_time() : kNever;
        if (arrival_ == kNever && !line_.empty())
            arrival_ = now + character_time();
        break;
    case kInterruptEnable: value = lcr_ & kDivisorAccess ? static_cast<std::uint8_t>(divisor_ >> 8) : ier_; break;
    case kInterruptId: {
        const unsigned id = interrupt_id();
        if (id == 2)
            empty_pending_ = false;
        value = static_cast<std::uint8_t>(id | (fifo_enabled_ ? 0xC0 : 0));
        break;
    }
    case kLineControl: value = lcr_; break;
    case kModemControl: value = mcr_; break;
    case kLineStatus:
        value = line_status();
        errors_ = 0;
        break;
    case kModemStatus:
        value = modem_lines() | modem_delta_;
        modem_delta_ = 0;
        break;
    case kScratch: value = scratch_; break;
    }
    plan();
    update_irq();
    return value;
}

void Uart16550::write8(unsigned, Addr offset, std::uint8_t value) {
    const Tick now = time_.now();
    run_to(now);
    switch (offset & 7) {
    case kData:
        if (lcr_ & kDivisorAccess)
            divisor_ = static_cast<std::uint16_t>((divisor_ & 0xFF00) | value);
        else
            transmit(value, now);
        break;
    case kInterruptEnable:
        if (lcr_ & kDivisorAccess) {
            divisor_ = static_cast<std::uint16_t>((divisor_ & 0xFF) | value << 8);
        } else {
            // Enabling it while the transmitter is empty raises the interrupt again; drivers rely on that.
            if ((value & ~ier_ & kTxEmpty) && sending_ == 0)
                empty_pending_ = true;
            ier_ = value & 0xF;
        }
        break;
    case kInterruptId: { // FIFO control
        const bool enable = value & 1;
        if (enable != fifo_enabled_ || (enable && (value & 2))) {
            received_.clear();
            errors_ = 0;
            timeout_pending_ = false;
            timeout_ = kNever;
            if (arrival_ == kNever && !line_.empty())
                arrival_ = now + character_time();
        }
        if ((enable != fifo_enabled_ || (enable && (value & 4))) && sending_ > 1)
            sending_ = 1; // what is in the shift register goes on
        fifo_enabled_ = enable;
        trigger_code_ = enable ? value >> 6 : 0;
        break;
    }
    case kLineControl: lcr_ = value; break;
    case kModemControl: {
        const std::uint8_t before = modem_lines();
        mcr_ = value & 0x1F;
        modem_changed(before);
        break;
    }
    case kScratch: scratch_ = value; break;
    default: // line and modem status: for factory tests only
        break;
    }
    plan();
    update_irq();
}

namespace {

const RegisteredDevice registered(90, "uart16550", [](Devices &d) {
    auto &uart = d.add<Uart16550>(d.queue, d.time, d.isa(), Uart16550::kIrq, d.console_output);
    uart.map(d.ports);
    d.console_input = [&uart](std::string_view bytes) { uart.push(bytes); };
});

} // namespace

} // namespace moscope::dev
