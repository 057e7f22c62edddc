// SPDX-License-Identifier: BSD-3-Clause
// To whom the stall of a core is charged: which access, of which instruction, at which address; and that none is left
// over.
#include <set>

#include <gtest/gtest.h>

#include "cpu/x86/timed/timed_machine.hh"

using namespace moscope;
using namespace moscope::x86;
using namespace moscope::x86::test;

namespace {

constexpr Addr kCode = 0x1000, kA = 0x40000, kB = 0x41000, kC = 0x42000;
constexpr Tick kNs = kTicksPerNs, kEdge = 2 * kNs; ///< a wait ends at a clock edge, and begins after some instructions

struct Charges : testing::Test, TimedMachine, TransactionObserver {
    struct Seen {
        Addr at, pc, va;
        AccessKind kind;
        Tick exposed;
        bool walk;
    };
    Charges() { core.observer = this; }
    void transaction(const Transaction &t) override {
        seen.push_back({t.access->addr.value, t.pc, t.va, t.access->kind, t.exposed, t.walk});
        if (t.access->addr.value == lost_again)
            port.lose(lost_again);
    }
    void spun(const Spin &) override {}
    void stored(unsigned, Addr, unsigned, Addr) override {}
    void expected(Addr) override {}
    void prefetched(unsigned, Addr) override {}

    void run(std::initializer_list<int> code, Addr at = kCode, Addr b = kB) {
        m.code(at, code);
        m.core.r[rbx] = kA;
        m.core.r[rsi] = b;
        m.core.r[rdi] = kC;
        begin();
        queue.run(100'000 * kNs);
    }
    Tick exposed() const {
        Tick all = 0;
        for (const Seen &s : seen)
            all += s.exposed;
        return all;
    }
    Tick exposed(Addr line) const {
        Tick all = 0;
        for (const Seen &s : seen)
            all += line_of(s.at) == line ? s.exposed : 0;
        return all;
    }
    /// The access with the longest wait.
    Seen longest() const {
        return *std::max_element(seen.begin(), seen.end(),
                                 [](const Seen &a, const Seen &b) { return a.exposed < b.exposed; });
    }
    Tick memory() const { return core.spent(TimedCore::Charge::memory); }

    std::vector<Seen> seen;
    Addr lost_again = 0; ///< a line that the core loses as soon as it has it
};

} // namespace

TEST_F(Charges, InADrainEachStoreIsChargedFromTheDepartureOfThePreviousOneToItsOwn) {
    port.lose(kA, 300 * kNs);
    port.lose(kB, 100 * kNs);
    port.lose(kC, 500 * kNs);
    run({0x88, 0x03, 0x88, 0x06, 0x88, 0x07, 0x0f, 0xae, 0xf0,
         0xf4}); // mov [rbx], al; mov [rsi], al; mov [rdi], al; mfence; hlt
    EXPECT_NEAR(double(exposed(kA)), 300. * kNs, kEdge);
    EXPECT_EQ(exposed(kB), 0) << "it came while the oldest was waited for";
    EXPECT_NEAR(double(exposed(kC)), 200. * kNs, kEdge);
    EXPECT_EQ(exposed(), memory());
}

TEST_F(Charges, StoresWhoseLinesArriveTogetherAreNotChargedTwice) {
    port.lose(kA, 300 * kNs);
    port.lose(kB, 300 * kNs);
    run({0x88, 0x03, 0x88, 0x06, 0x0f, 0xae, 0xf0, 0xf4});
    EXPECT_NEAR(double(exposed(kA)), 300. * kNs, kEdge);
    EXPECT_LE(exposed(kB), kEdge);
    EXPECT_EQ(exposed(), memory());
}

TEST_F(Charges, AWaitForTheStoreBufferHasTheAddressAndInstructionOfTheStore) {
    port.lose(kA);
    run({0x88, 0x03, 0x8b, 0x43, 0xfe, 0xf4}); // mov [rbx], al; mov eax, [rbx - 2]; hlt
    const Seen s = longest();
    EXPECT_GT(s.exposed, 0);
    EXPECT_EQ(s.va, kA);
    EXPECT_EQ(s.pc, kCode);
}

TEST_F(Charges, AFetchIsChargedToTheInstructionThatIsFetched) {
    const Addr next = kCode + kLineBytes;
    port.lose(kCode);
    port.lose(next);
    for (unsigned i = 0; i < kLineBytes; ++i)
        m.write<std::uint8_t>(kCode + i, 0x90);
    m.write<std::uint8_t>(next, 0xf4);
    begin();
    m.core.rip = kCode;
    queue.run(100'000 * kNs);
    ASSERT_EQ(seen.size(), 2u);
    for (const Addr line : {kCode, next}) {
        const Seen &s = seen[line == next];
        EXPECT_EQ(s.kind, AccessKind::fetch);
        EXPECT_EQ(line_of(s.at), line);
        EXPECT_EQ(s.pc, line);
        EXPECT_EQ(s.va, 0u);
        EXPECT_GT(s.exposed, 0);
    }
}

TEST_F(Charges, AJumpIsNotChargedWithTheFetchOfItsTarget) {
    const Addr target = kCode + 2 * kLineBytes;
    port.lose(target);
    m.write<std::uint8_t>(target, 0xf4);
    run({0xeb, 0x7e}); // jmp target
    ASSERT_EQ(seen.size(), 1u);
    EXPECT_EQ(seen[0].pc, target);
}

TEST_F(Charges, AfterAFetchThatFaultsALoadIsChargedToTheHandlersInstruction) {
    constexpr Addr kAbsent = 0x80000, kHandler = SystemMachine::kHandlers + 16 * exc_pf;
    m.small_pages();
    m.page(kAbsent, 0);
    m.code(kHandler, {0x8b, 0x03, 0x49, 0xff, 0xc8, 0x74, 0x02, 0xff, 0xe1, 0xf4});
    // mov eax, [rbx]; dec r8; jz end; jmp rcx; end: hlt
    m.core.r[r8] = 4; // the core first looks up the handler's block, then remembers it
    m.core.r[rcx] = kAbsent;
    port.lose(kA);
    lost_again = kA;
    run({0xff, 0xe1}); // jmp rcx
    unsigned loads = 0;
    for (const Seen &s : seen)
        if (s.at == kA) {
            EXPECT_EQ(s.pc, kHandler);
            ++loads;
        }
    EXPECT_EQ(loads, 4u);
}

TEST(StoppedCore, ReportsThePauseThatEndedItsBlockAsItsInstruction) {
    TimedParams params = blocking();
    params.skip_spinning = false;
    TimedMachine t(params);
    t.m.code(kCode, {0x8b, 0x07, 0xf3, 0x90, 0x85, 0xc0, 0x74, 0xf8}); // l: mov eax, [rdi]; pause; test eax, eax; jz l
    t.m.core.r[rdi] = kC;
    t.m.core.rip = kCode;
    t.begin();
    std::set<Addr> at;
    for (Tick stop = kNs; stop < 400 * kNs; stop += kNs / 4) {
        t.queue.run(stop);
        at.insert(t.core.pc() - kCode);
    }
    EXPECT_EQ(at, (std::set<Addr>{0, 2, 6})) << "the load, PAUSE and the branch";
}

TEST_F(Charges, APageWalkHasNoAddressAndItsUpdatesOfBitsAreWalksToo) {
    m.small_pages();
    constexpr Addr kLarge = 0x210000, kOther = 0x220000; // in a page that needs no table
    const Addr directory = SystemMachine::kTables + 0x2000, table = SystemMachine::kTables + 0x3000 + (kA >> 12) * 8;
    port.lose(kOther, 300 * kNs);
    port.lose(line_of(table), 100 * kNs);
    at(380 * kNs, [&] { port.lose(directory); });        // its entry has been read, and is to be marked as accessed
    run({0x8b, 0x06, 0x8b, 0x03, 0xf4}, kLarge, kOther); // mov eax, [rsi]; mov eax, [rbx]; hlt
    unsigned walks = 0, updates = 0;
    for (const Seen &s : seen) {
        EXPECT_EQ(s.walk, s.at == table || s.at == directory);
        EXPECT_EQ(s.va, s.walk ? 0 : s.at);
        walks += s.at == table && s.kind == AccessKind::load;
        updates += s.at == directory && s.kind == AccessKind::rmw;
    }
    EXPECT_EQ(walks, 1u);
    EXPECT_EQ(updates, 1u);
    EXPECT_EQ(exposed(), memory());
}

TEST_F(Charges, AWaitForNonTemporalStoresIsMemoryStallOfTheOneThatEnds) {
    run({0x0f, 0xc3, 0x03, 0x0f, 0xc3, 0x46, 0x08, 0x0f, 0xae, 0xf0,
         0xf4}); // movnti [rbx], eax; movnti [rsi + 8], eax; mfence; hlt
    const Seen s = longest();
    EXPECT_EQ(s.kind, AccessKind::nt_store);
    EXPECT_EQ(s.at, kA);
    EXPECT_EQ(s.va, kA);
    EXPECT_EQ(s.pc, kCode);
    for (const Seen &x : seen)
        EXPECT_EQ(x.va, x.at);
    EXPECT_NEAR(double(exposed()), double(AmplePort::kMiss), kEdge);
    EXPECT_EQ(exposed(), memory());
}

TEST_F(Charges, StallCutByTheEndOfAWindowIsReportedOnceTogetherWithItsRest) {
    port.lose(kA, 300 * kNs);
    at(100 * kNs, [&] {
        core.settle(queue.now());
        EXPECT_GT(core.unreported(), 50 * kNs);
        EXPECT_EQ(core.unreported(), memory());
    });
    run({0x8b, 0x03, 0xf4}); // mov eax, [rbx]; hlt
    EXPECT_EQ(core.unreported(), 0);
    EXPECT_NEAR(double(exposed(kA)), 300. * kNs, kEdge);
    EXPECT_EQ(exposed(), memory());
}
