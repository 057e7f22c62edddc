// SPDX-License-Identifier: BSD-3-Clause
// What ends a wait in detailed mode, and when: HLT and interrupts, MWAIT and the line that it monitors.
#include <gtest/gtest.h>

#include "cpu/x86/timed/timed_machine.hh"

using namespace moscope;
using namespace moscope::x86;
using namespace moscope::x86::test;

namespace {

constexpr Addr kCode = 0x1000, kLine = 0x40040, kNeighbour = 0x40080;
constexpr Tick kNotice = TimedParams{}.interrupt_fs, kUs = 1000 * kTicksPerNs;

struct Waiting : testing::Test, TimedMachine {
    void interrupt_at(Tick t, int vector = 0x41) {
        at(t, [this, vector] {
            apic.interrupt(vector);
            core.signalled(queue.now());
        });
    }
    /// monitor; mwait; inc rbx; cli; hlt
    void monitors(bool masked_interrupts_too = false) {
        m.code(kCode, {0x0f, 0x01, 0xc8, 0x89, 0xf1, 0x0f, 0x01, 0xc9, 0x48, 0xff, 0xc3, 0xfa, 0xf4});
        m.core.r[rax] = kLine + 8;
        m.core.r[rsi] = masked_interrupts_too;
        m.core.r[rcx] = 0;
        begin();
    }
    bool taken() const { return m.core.rip - SystemMachine::kHandlers < 4096; }
    bool awake() const { return m.core.r[rbx] != 0; }
    /// Ticks since the beginning in which the core was not idle.
    Tick spent_awake() const { return core.window() - core.spent(TimedCore::Charge::idle); }
};

} // namespace

TEST_F(Waiting, AnInterruptIsNoticedAfterItsTimeHoweverManyFollow) {
    m.code(kCode, {0xfb, 0xf4, 0x90}); // sti; hlt
    begin();
    interrupt_at(kUs);
    interrupt_at(kUs + kNotice / 2);
    interrupt_at(kUs + kNotice - 1);
    queue.run(kUs + kNotice);
    EXPECT_FALSE(taken());
    queue.run(kUs + kNotice + 200 * kTicksPerNs);
    EXPECT_TRUE(taken()) << "later ones do not push the notice back";
}

TEST_F(Waiting, MwaitSleepsUntilItsLineIsTakenAway) {
    monitors();
    at(kUs, [this] { port.lose(kNeighbour); });
    at(2 * kUs, [this] { port.before_change(kLine); }); // and nothing is lost: another core reads it
    queue.run(3 * kUs);
    EXPECT_FALSE(awake());
    at(3 * kUs, [this] { port.lose(kLine); });
    queue.run(3 * kUs + 20 * kTicksPerNs);
    EXPECT_TRUE(awake());
    core.settle(queue.now());
    EXPECT_LT(spent_awake(), kUs / 2);
}

/// A prefetched line that arrives may replace the line that a sleeping core watches, and the core does not learn of it.
TEST_F(Waiting, MwaitPollsWhileAPrefetchIsUnderWay) {
    unsigned under_way = 1;
    port.prefetches_ = &under_way;
    monitors();
    at(kUs, [this] { port.lose(kLine); });
    queue.run(kUs - 1);
    EXPECT_FALSE(awake() || port.sleeping_);
    queue.run(kUs + 120 * kTicksPerNs);
    EXPECT_TRUE(awake());
}

TEST_F(Waiting, ACoreInASpinLoopSleepsOnceNoPrefetchIsUnderWay) {
    unsigned under_way = 1;
    port.prefetches_ = &under_way;
    m.code(kCode, {0xf3, 0x90, 0x8b, 0x06, 0xeb, 0xfa}); // pause; mov eax, [rsi]; jmp to the beginning
    m.core.r[rsi] = kLine;
    begin();
    at(3 * kUs, [&] { under_way = 0; });
    queue.run(3 * kUs - 1);
    EXPECT_FALSE(port.sleeping_);
    queue.run(6 * kUs);
    EXPECT_TRUE(port.sleeping_);
}

/// As a core that reads its own task structure and that of a lock's owner.
TEST_F(Waiting, ACoreInASpinLoopSleepsWhereverItsTwoLinesLie) {
    for (const Addr apart : {Addr{kLineBytes}, Addr{Port::kSlots} * kLineBytes, 2 * Addr{Port::kSlots} * kLineBytes}) {
        TimedMachine fresh;
        // pause; mov eax, [rsi]; mov edx, [rdi]; jmp to the beginning
        fresh.m.code(kCode, {0xf3, 0x90, 0x8b, 0x06, 0x8b, 0x17, 0xeb, 0xf8});
        fresh.m.core.r[rsi] = kLine;
        fresh.m.core.r[rdi] = kLine + apart;
        fresh.begin();
        fresh.at(kUs, [] {}); // up to here the core is ahead of all events
        fresh.queue.run(3 * kUs);
        EXPECT_TRUE(fresh.port.sleeping_) << apart << " bytes apart";
    }
}

/// From one iteration to the next only the time stamp differs, and the loop clears it.
TEST_F(Waiting, ACoreThatPollsTheTimeStampCounterDoesNotSleep) {
    // rdtsc; shl rdx, 32; or rax, rdx; cmp rax, r8; setae al; movzx ecx, al; xor eax, eax; xor edx, edx; test ecx, ecx; pause; jz back;
    // inc rbx; hlt
    m.code(kCode, {0x0f, 0x31, 0x48, 0xc1, 0xe2, 0x20, 0x48, 0x09, 0xd0, 0x4c, 0x39, 0xc0, 0x0f, 0x93, 0xc0, 0x0f,
                   0xb6, 0xc8, 0x31, 0xc0, 0x31, 0xd2, 0x85, 0xc9, 0xf3, 0x90, 0x74, 0xe4, 0x48, 0xff, 0xc3, 0xf4});
    m.core.r[r8] = 1000; // instructions, in this machine
    begin();
    at(kUs, [] {});
    queue.run(10 * kUs);
    EXPECT_TRUE(awake());
}

TEST_F(Waiting, ACoreInASpinLoopRunsTheLoopAnewWhenItsCodeIsReplaced) {
    m.code(kCode, {0xf3, 0x90, 0x80, 0x3e, 0x00, 0x74, 0xf9, 0x48, 0xff, 0xc3,
                   0xf4}); // pause; cmp byte [rsi], 0; je back; inc rbx; hlt
    m.core.r[rsi] = kLine;
    begin();
    at(kUs, [this] { port.lose(kCode); }); // the core that writes asks for the line
    at(kUs + 100 * kTicksPerNs, [this] { m.write<std::uint16_t>(kCode + 5, 0x9090); });
    queue.run(kUs + 99 * kTicksPerNs);
    EXPECT_TRUE(port.sleeping_);
    queue.run(2 * kUs);
    EXPECT_TRUE(awake());
}

/// A line that a store brings may replace the one that the core watches.
TEST_F(Waiting, MwaitBeginsWhenAllStoresArePerformed) {
    m.code(kCode, {0x0f, 0x01, 0xc8, 0x88, 0x06, 0x0f, 0x01, 0xc9, 0xf4}); // monitor; mov [rsi], al; mwait; hlt
    m.core.r[rax] = kLine;
    m.core.r[rsi] = kNeighbour;
    m.core.r[rcx] = 0;
    port.lose(kNeighbour);
    begin();
    Tick t = 0;
    while (!port.sleeping_ && t < kUs)
        queue.run(t += kTicksPerNs);
    EXPECT_GE(t, AmplePort::kMiss);
    EXPECT_TRUE(port.sleeping_ && core.stores().empty());
}

TEST_F(Waiting, MwaitDoesNotSleepOnALineThatWasTakenSinceMonitor) {
    monitors();
    port.lose(kLine); // before MONITOR it would be fetched again, so from the first instruction's end on
    m.core.monitor = {};
    m.core.monitor.armed = true;
    m.core.monitor.line = kLine;
    m.core.rip = kCode + 3;
    queue.run(kUs / 10);
    EXPECT_TRUE(awake());
}

TEST_F(Waiting, AnInterruptEndsMwaitAndIsTaken) {
    monitors();
    m.core.flags.system |= Flags::if_;
    interrupt_at(kUs);
    queue.run(kUs + kNotice);
    EXPECT_FALSE(awake());
    queue.run(kUs + kNotice + 200 * kTicksPerNs);
    EXPECT_FALSE(m.core.monitor.waiting);
    EXPECT_EQ(m.pushed(0), kCode + 8) << "it returns behind MWAIT";
}

TEST(WaitingAtAnyTime, AnInterruptEndsMwaitWheneverItComes) {
    for (const char *const model : {"blocking", "out_of_order"})
        for (Tick at = 0; at < 200 * kTicksPerNs; at += kTicksPerNs) {
            TimedParams params;
            params.core.model = model;
            TimedMachine t(params);
            // sti; nop; monitor; xor ecx, ecx; mfence; cmp byte [rdi], 0; mwait; inc rbx; cli; hlt
            t.m.code(kCode, {0xfb, 0x90, 0x0f, 0x01, 0xc8, 0x31, 0xc9, 0x0f, 0xae, 0xf0, 0x80,
                             0x3f, 0x00, 0x0f, 0x01, 0xc9, 0x48, 0xff, 0xc3, 0xfa, 0xf4});
            t.m.core.r[rax] = t.m.core.r[rdi] = kLine + 8;
            t.m.core.r[rcx] = 0;
            t.m.core.rip = kCode;
            t.begin();
            t.at(at, [&t] {
                t.apic.interrupt(0x41);
                t.core.signalled(t.queue.now());
            });
            t.queue.run(5 * kUs);
            ASSERT_LT(t.m.core.rip - SystemMachine::kHandlers, 4096u) << at / kTicksPerNs << " ns";
        }
}

TEST_F(Waiting, AMaskedInterruptEndsMwaitOnlyIfEcxAsksForIt) {
    for (const bool asked : {false, true}) {
        TimedMachine fresh;
        fresh.m.code(kCode, {0x0f, 0x01, 0xc8, 0x89, 0xf1, 0x0f, 0x01, 0xc9, 0x48, 0xff, 0xc3, 0xfa, 0xf4});
        fresh.m.core.r[rax] = kLine;
        fresh.m.core.r[rsi] = asked;
        fresh.m.core.r[rcx] = 0;
        fresh.m.core.flags.system &= ~Flags::if_;
        fresh.begin();
        fresh.at(kUs, [&] {
            fresh.apic.interrupt(0x41);
            fresh.core.signalled(fresh.queue.now());
        });
        fresh.queue.run(2 * kUs);
        EXPECT_EQ(fresh.m.core.r[rbx] != 0, asked);
    }
}
