// SPDX-License-Identifier: BSD-3-Clause
// The serial port as drivers see it: detection by loopback, transmitter-empty interrupts at the character's end,
// FIFO levels, time-out and overrun.
#include <gtest/gtest.h>

#include <string>

#include "base/rng.hh"
#include "dev/harness.hh"
#include "dev/serial/uart16550.hh"

using namespace moscope;
using namespace moscope::dev;

namespace {

constexpr Tick kChar = 1000 * kTicksPerNs;

struct UartTest : testing::Test {
    EventQueue queue;
    TestTime time{queue};
    Wires wires;
    std::string out;
    std::uint64_t in(unsigned r) { return uart->read(0, 0, r, 1); }
    void set(unsigned r, unsigned v) { uart->write(0, 0, r, v, 1); }
    bool irq() { return wires.now[4]; }
    void rises_at(Tick t) {
        expect_change(time, t, true, [this] { return irq(); });
    }
    void make(Uart16550::Config c) {
        uart = std::make_unique<Uart16550>(
            queue, time, wires, 4, [this](std::uint8_t b) { out.push_back(static_cast<char>(b)); }, c);
    }
    UartTest() { make({kChar, true}); }
    std::unique_ptr<Uart16550> uart;
};

TEST_F(UartTest, AWrittenByteIsOutAndTheTransmitterIsEmptyACharacterTimeLater) {
    EXPECT_EQ(in(5), 0x60u);
    set(0, 'A');
    EXPECT_EQ(out, "A");
    EXPECT_EQ(in(5), 0u);
    time.to(kChar - 1);
    EXPECT_EQ(in(5), 0u);
    time.to(kChar);
    EXPECT_EQ(in(5), 0x60u);
}

TEST_F(UartTest, TheEmptyInterruptComesByAnEventAndGoesByReadingItsIdentification) {
    set(4, 8); // OUT2
    set(0, 'A');
    set(1, 2);
    EXPECT_FALSE(irq());
    rises_at(kChar);
    EXPECT_EQ(in(2), 2u);
    EXPECT_FALSE(irq());
    EXPECT_EQ(in(2), 1u);
}

TEST_F(UartTest, EnablingTheEmptyInterruptOnAnEmptyTransmitterAsksForItEachTime) {
    set(4, 8);
    for (int i = 0; i < 3; ++i) {
        set(1, 2);
        EXPECT_TRUE(irq());
        EXPECT_EQ(in(2), 2u);
        EXPECT_EQ(in(2), 1u);
        set(1, 2); // was enabled already
        EXPECT_FALSE(irq());
        set(1, 0);
    }
}

TEST_F(UartTest, SixteenBytesFitTheFifoAndTakeSixteenCharacterTimes) {
    set(2, 1);
    for (int i = 0; i < 20; ++i)
        set(0, static_cast<unsigned>('a' + i));
    EXPECT_EQ(out, "abcdefghijklmnop");
    time.to(16 * kChar - 1);
    EXPECT_EQ(in(5) & 0x60, 0u);
    time.to(16 * kChar);
    EXPECT_EQ(in(5) & 0x60, 0x60u);
}

TEST_F(UartTest, LoopbackShowsModemControlAsModemStatusAndReturnsData) {
    set(4, 0x1A); // loop, OUT2, RTS
    EXPECT_EQ(in(6) & 0xF0, 0x90u);
    set(0, 0x5A);
    EXPECT_EQ(out, "");
    EXPECT_EQ(in(5) & 1, 1u);
    EXPECT_EQ(in(0), 0x5Au);
    set(1, 0xF);
    EXPECT_FALSE(irq()); // the wire is cut off
    set(4, 0);
    EXPECT_EQ(in(6) & 0xF0, 0xB0u);
}

TEST_F(UartTest, IdentifiesItselfAsA16550AAndNothingLater) {
    set(2, 1);
    EXPECT_EQ(in(2) >> 6, 3u);
    set(2, 0x21); // 16750: 64 bytes
    EXPECT_EQ(in(2) & 0x20, 0u);
    set(2, 0);
    EXPECT_EQ(in(2) >> 6, 0u);
    set(3, 0x80);
    set(0, 0);
    set(1, 0);
    EXPECT_EQ(in(0), 0u);
    set(0, 0x34);
    set(1, 0x12);
    EXPECT_EQ(in(0), 0x34u);
    EXPECT_EQ(in(1), 0x12u);
    set(3, 3);
    EXPECT_EQ(in(1), 0u);
    set(7, 0xA5);
    EXPECT_EQ(in(7), 0xA5u);
}

TEST_F(UartTest, InputInterruptsAtTheTriggerLevelAndBelowItAfterFourCharacterTimes) {
    set(4, 8);
    set(2, 0x41); // FIFO, level 4
    set(1, 1);
    uart->push("abcdef");
    rises_at(4 * kChar);
    EXPECT_EQ(in(2), 0xC4u);
    time.to(6 * kChar);
    for (char c : std::string("abcd"))
        EXPECT_EQ(in(0), static_cast<unsigned>(c));
    EXPECT_FALSE(irq());
    const Tick last_read = time.now();
    rises_at(last_read + 4 * kChar);
    EXPECT_EQ(in(2), 0xCCu);
    EXPECT_EQ(in(0), 'e');
    EXPECT_FALSE(irq());
    EXPECT_EQ(in(0), 'f');
    EXPECT_EQ(in(5) & 1, 0u);
    EXPECT_EQ(in(0), 0u);
}

TEST_F(UartTest, AnUnreadByteTimesOutFourCharacterTimesAfterItsArrival) {
    set(4, 8);
    set(2, 0xC1); // level 14
    set(1, 1);
    uart->push("a");
    rises_at(5 * kChar);
    EXPECT_EQ(in(2), 0xCCu);
}

TEST_F(UartTest, ALineWithFlowControlWaitsForRoomAndLosesNothing) {
    set(2, 1);
    std::string sent, got;
    for (int i = 0; i < 100; ++i)
        sent.push_back(static_cast<char>('0' + i % 10));
    uart->push(sent);
    for (int i = 0; i < 30; ++i) {
        time.by(40 * kChar);
        while (in(5) & 1)
            got.push_back(static_cast<char>(in(0)));
    }
    EXPECT_EQ(got, sent);
    EXPECT_EQ(uart->waiting(), 0u);
}

TEST_F(UartTest, ALineWithoutFlowControlOverrunsTheFifoAndKeepsTheOldest) {
    make({kChar, false});
    set(2, 1);
    set(1, 4);
    uart->push("0123456789abcdefXY");
    time.by(16 * kChar);
    EXPECT_EQ(in(5), 0x61u);
    time.by(kChar);
    EXPECT_EQ(in(2), 0xC6u);
    EXPECT_EQ(in(5), 0x63u); // overrun, once
    EXPECT_EQ(in(5), 0x61u);
    time.by(kChar);
    std::string got;
    while (in(5) & 1)
        got.push_back(static_cast<char>(in(0)));
    EXPECT_EQ(got, "0123456789abcdef");
}

TEST_F(UartTest, WithoutAFifoALaterByteOverwritesTheOneNotRead) {
    make({kChar, false});
    uart->push("ab");
    time.by(2 * kChar);
    EXPECT_EQ(in(5), 0x63u);
    EXPECT_EQ(in(0), 'b');
}

TEST_F(UartTest, CharacterTimeFollowsTheDivisorIfNoneIsGiven) {
    make({0, true});
    set(3, 0x83); // divisor access, 8 bits, no parity, one stop bit
    set(0, 12);   // 9600 baud
    set(1, 0);
    set(3, 3);
    set(0, 'x');
    const auto exact = static_cast<Tick>(10 * kTicksPerSecond / 9600);
    time.to(exact - 1000 * kTicksPerNs);
    EXPECT_EQ(in(5) & 0x40, 0u);
    time.to(exact);
    EXPECT_EQ(in(5) & 0x40, 0x40u);
}

TEST_F(UartTest, ACheckpointInTheMiddleOfACharacterGoesOnAsIfNothingHadHappened) {
    set(4, 8);
    set(1, 3);
    in(2);
    set(0, 'q');
    uart->push("zz");
    time.to(kChar / 2);
    const auto bytes = saved(*uart);
    EventQueue queue2;
    TestTime time2(queue2);
    Wires wires2;
    Uart16550 other(queue2, time2, wires2, 4, nullptr, {kChar, true});
    restore(other, bytes);
    EXPECT_EQ(saved(other), bytes);
    time2.to(kChar - 1);
    EXPECT_FALSE(wires2.now[4]);
    time2.to(kChar);
    EXPECT_TRUE(wires2.now[4]);
    EXPECT_EQ(other.read(0, 0, 0, 1), 'z');
}

TEST_F(UartTest, NoAccessWhateverItIsHurtsTheSimulator) {
    Rng rng(5);
    for (int i = 0; i < 200000; ++i) {
        const auto offset = rng.below(16), value = rng.below(1ull << 32);
        if (rng.below(2))
            uart->write(0, 0, offset, value, 1u << rng.below(4));
        else
            uart->read(0, 0, offset, 1u << rng.below(4));
        if (rng.below(64) == 0)
            uart->push("input");
        time.by(static_cast<Tick>(rng.below(2 * kChar)));
    }
}

} // namespace
