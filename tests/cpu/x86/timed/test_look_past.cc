// SPDX-License-Identifier: BSD-3-Clause
// The model that overlaps misses: which instructions it looks past, software prefetches, loads of two lines, and what
// translation, interrupts and faults cost.
#include <gtest/gtest.h>

#include <string>

#include "cpu/x86/timed/l1_tlb.hh"
#include "cpu/x86/timed/overlapping_machine.hh"

using namespace moscope;
using namespace moscope::x86;
using namespace moscope::x86::test;

namespace {

constexpr Addr kOther = kData + 0x1000, kStack = kData + 0x2000, kThird = kData + 0x3000;

struct Between {
    const char *name;
    Bytes code;
};

struct LooksPast : testing::TestWithParam<Between>, OverlappingMachine {};
struct Prefetching : testing::Test, OverlappingMachine {
    /// The line of kData takes 200 ns, and 400 cycles (a taken branch takes two) lie between the prefetch and its use.
    static Tick run_after(OverlappingMachine &o, Bytes prefetch, Bytes use) {
        o.m.core.r[rbx] = kData;
        o.m.write<std::uint64_t>(kData, 77);
        o.port.lose(kData, 200 * kNs);
        o.put(prefetch);
        o.put(CODE("mov ecx, 200; 1: dec ecx; jnz 1b"));
        o.put(use);
        o.put(CODE("hlt"));
        return o.run();
    }
    Tick run_after(Bytes prefetch, Bytes use) { return run_after(*this, prefetch, use); }
};
struct Translating : testing::Test {
    /// Cycles of `loads` loads from as many pages after a change of CR3.
    static double cycles_of(unsigned loads) {
        OverlappingMachine o;
        o.m.small_pages();
        for (Addr page = 0; page < 512; ++page) // accessed and dirty
            o.m.write<std::uint64_t>(SystemMachine::kTables + 0x3000 + 8 * page, page << 12 | 0x67);
        o.m.core.flush_tlb(true);
        o.m.core.r[rbx] = kData;
        o.put(CODE("mov rax, cr3; mov cr3, rax"));
        for (unsigned i = 0; i < loads; ++i)
            o.put(CODE("mov rdx, [rbx]; lea rbx, [rbx + 0x1000]"));
        o.put(CODE("hlt"));
        return double(o.run()) / double(kNs);
    }
};

} // namespace

TEST_P(LooksPast, AnInstructionBetweenTwoLoadsSoThatTheyGoOutTogether) {
    port.lose(kData, 300 * kNs);
    port.lose(kOther, 300 * kNs);
    m.core.r[rbx] = kData;
    m.core.r[rsi] = kOther;
    m.core.r[r8] = m.core.r[rbp] = kStack;
    m.core.r[r9] = kThird;
    m.core.r[rdi] = 5;
    m.write<std::uint32_t>(kThird, 5);
    port.lose(kThird, 300 * kNs);
    put(CODE("mov r15, [rbx]"));
    put(GetParam().code);
    put(CODE("mov r14, [rsi]; hlt"));
    EXPECT_NEAR(double(run()), 300. * kNs, kWalks + 80. * kNs);
}

INSTANTIATE_TEST_SUITE_P(
    Instructions, LooksPast,
    testing::ValuesIn({Between{"prefetch", CODE("prefetcht0 [r8]")}, Between{"leave", CODE("leave")},
                       Between{"lzcnt", CODE("lzcnt ecx, edi")}, Between{"cld", CODE("cld")},
                       Between{"clc", CODE("clc")},
                       Between{"a_nop_that_later_processors_decode_as_endbr64", CODE("endbr64")},
                       Between{"div", CODE("mov eax, 100; cdq; div edi")},
                       Between{"div_of_the_missing", CODE("mov rax, r15; cdq; div r15d")},
                       Between{"div_by_the_missing", CODE("mov eax, 100; cdq; div dword ptr [r9]")},
                       Between{"cmpxchg", CODE("cmpxchg ecx, edi")},
                       Between{"cmpxchg_in_memory", CODE("cmpxchg [r8], edi")},
                       Between{"cmpxchg16b", CODE("cmpxchg16b [r8]")}, Between{"xadd", CODE("xadd ecx, edi")}}),
    [](const auto &info) { return std::string(info.param.name); });

TEST_F(LooksPast, ADivisionByAZeroThatMissesFaultsWhenTheZeroArrives) {
    port.lose(kData, 300 * kNs);
    m.core.r[rbx] = kData;
    put(CODE("mov r15, [rbx]; mov eax, 1; cdq; div r15d; hlt"));
    run();
    EXPECT_EQ(m.core.rip, SystemMachine::kHandlers + 1) << "the handler of #DE";
}

TEST_F(Prefetching, AnEarlyPrefetchHidesTheMiss) {
    const Tick time = run_after(CODE("prefetchnta [rbx]"), CODE("mov rax, [rbx]"));
    EXPECT_EQ(m.core.r[rax], 77u);
    ASSERT_EQ(transactions.size(), 1u);
    EXPECT_EQ(transactions[0].second, 0);
    OverlappingMachine without;
    EXPECT_NEAR(double(run_after(without, {}, CODE("mov rax, [rbx]")) - time), 200. * kNs, 10. * kNs);
}

TEST_F(Prefetching, PrefetchwBringsTheRightToWrite) {
    run_after(CODE("prefetchw [rbx]"), CODE("lock inc qword ptr [rbx]"));
    EXPECT_EQ(m.read<std::uint64_t>(kData), 78u);
    ASSERT_EQ(transactions.size(), 1u);
    EXPECT_EQ(transactions[0].first.kind, AccessKind::store);
    EXPECT_EQ(transactions[0].second, 0);
}

TEST_F(Prefetching, ALoadDuringPrefetchwGetsTheValue) {
    run_after(CODE("prefetchw [rbx]; mov rax, [rbx]"), {});
    EXPECT_EQ(m.core.r[rax], 77u);
    EXPECT_EQ(m.read<std::uint64_t>(kData), 77u);
}

TEST_F(Prefetching, APrefetchOfAnUnmappedPageDoesNothing) {
    m.core.r[r9] = 0xffff'8000'0000'0000;
    run_after(CODE("prefetcht0 [r9]; mov r9, 0x7000000000; prefetcht0 [r9]"), {});
    EXPECT_TRUE(transactions.empty());
}

TEST_F(Prefetching, ALoadOfTwoLinesRequestsThemTogether) {
    port.lose(kData, 300 * kNs);
    port.lose(kData + kLineBytes, 300 * kNs);
    m.write<std::uint64_t>(kData + 60, 0x1122334455667788);
    m.core.r[rbx] = kData;
    put(CODE("mov rax, [rbx + 60]; hlt"));
    EXPECT_NEAR(double(run()), 300. * kNs, kWalks);
    EXPECT_EQ(m.core.r[rax], 0x1122334455667788u);
}

struct MissBuffers : testing::TestWithParam<std::pair<unsigned, Tick>> {};

TEST_P(MissBuffers, ALoadGetsTheBufferThatAStoreReleases) {
    TimedParams p = overlapping();
    p.outstanding_misses = GetParam().first;
    OverlappingMachine o(p);
    o.port.lose(kStack, GetParam().second);
    o.port.lose(kThird, 200 * kNs);
    o.port.lose(kData, 300 * kNs);
    o.port.lose(kOther, 300 * kNs);
    o.m.core.r[r8] = kStack;
    o.m.core.r[r9] = kThird;
    o.m.core.r[rbx] = kData;
    o.m.core.r[rsi] = kOther;
    o.put(CODE("mov [r8], eax; mov [r9], eax; mov ecx, 5; 1: dec ecx; jnz 1b; mov rax, [rbx]; mov rdx, [rsi]; mov rcx, "
               "rdx; hlt"));
    o.run();
    Tick left = 0, requested = 0;
    for (const auto &[access, stall] : o.transactions) {
        left = access.addr.value == kThird ? access.done : left;
        requested = access.addr.value == kOther ? access.issued : requested;
    }
    EXPECT_GT(left, 0);
    EXPECT_EQ(requested, left);
}

// Two stores have two of three buffers, of which one becomes free; or both of two, and both become free.
INSTANTIATE_TEST_SUITE_P(Numbers, MissBuffers, testing::Values(std::pair(3u, 500 * kNs), std::pair(2u, 200 * kNs)));

TEST_F(Translating, AWalkTakesACacheHitForEachLevelAndTheWalkerDoesOneAtATime) {
    constexpr double kLevels = 4, kHit = 3;
    EXPECT_NEAR(cycles_of(9) - cycles_of(1), 8 * kLevels * kHit, 4.);
}

TEST(L1DataTlb, AFlushKeepsGlobalPagesOnly) {
    L1Tlb tlb(4);
    tlb.access(5, true);
    tlb.access(6, false);
    tlb.access(7, false);
    tlb.flush_page(Addr{7} << 12);
    EXPECT_FALSE(tlb.contains(7));
    EXPECT_TRUE(tlb.contains(6));
    tlb.flush_local();
    EXPECT_TRUE(tlb.contains(5));
    EXPECT_FALSE(tlb.contains(6));
    EXPECT_FALSE(tlb.holds(6));
}

TEST(MaskedInterrupts, OneThatWaitsCostsNothing) {
    const auto time = [](bool waits) {
        OverlappingMachine o;
        if (waits)
            o.apic.interrupt(0x40);
        o.m.core.flags.system &= ~Flags::if_;
        o.m.core.r[rbx] = kData;
        o.put(CODE("mov ecx, 200; 1: mov rax, [rbx]; imul rdx, rax; imul rdi, rax; dec ecx; jnz 1b; hlt"));
        o.m.core.rip = kCode;
        o.begin();
        o.queue.run(100'000 * kNs);
        return o.core.window() - o.core.spent(TimedCore::Charge::idle);
    };
    EXPECT_EQ(time(true), time(false));
}

TEST(Clflush, RequestsTheFlushOfItsLineAfterEarlierStores) {
    for (const char *const model : {"blocking", "out_of_order"}) {
        TimedParams p;
        p.core.model = model;
        OverlappingMachine o(p);
        o.port.flushes_ = true;
        o.port.lose(kData, 100 * kNs);
        o.m.core.r[rbx] = kData + 8;
        o.put(CODE("mov qword ptr [rbx], 5; clflush [rbx]; mov rax, [rbx]; hlt"));
        o.run();
        ASSERT_GE(o.transactions.size(), 2u);
        const Access &flush = o.transactions.back().first;
        EXPECT_EQ(flush.kind, AccessKind::flush);
        EXPECT_EQ(line_of(flush.addr.value), kData);
        EXPECT_GE(flush.issued, 100 * kNs);
        EXPECT_EQ(o.m.core.r[rax], 5u);
    }
}

TEST(Charges, DoNotDependOnWhenTheyAreRead) {
    const auto spent = [](bool read) {
        OverlappingMachine o;
        o.port.lose(kData, 100 * kNs);
        o.port.lose(kOther, 400 * kNs);
        o.m.core.r[rbx] = kData;
        o.m.core.r[rsi] = kOther;
        o.m.core.r[rdi] = 1;
        // The load waits for its address; at HLT, the prefetch is still under way.
        o.put(CODE("prefetcht0 [rsi]; imul rdi, rdi; imul rdi, rdi; imul rdi, rdi; imul rdi, rdi; imul rdi, rdi"));
        o.put(CODE("imul rdi, rdi; imul rdi, rdi; mov rax, [rbx + rdi]; hlt"));
        for (Tick t = 0; read && t < 600; ++t)
            o.at(t * kNs, [&o] { o.core.settle(o.queue.now()); });
        o.run();
        std::vector<Tick> all;
        for (const auto what : {TimedCore::Charge::busy, TimedCore::Charge::core, TimedCore::Charge::memory})
            all.push_back(o.core.spent(what));
        return all;
    };
    EXPECT_EQ(spent(true), spent(false));
}

TEST(Faults, ADeliveryThatMissesDelaysTheHandler) {
    constexpr unsigned kVector = 6; // #UD
    const auto time = [](bool misses) {
        OverlappingMachine o;
        o.at_ = SystemMachine::kHandlers + kVector * 16;
        o.put(CODE("imul rdi, rdi; imul rdi, rdi; imul rdi, rdi; imul rdi, rdi; imul rdi, rdi; imul rdi, rdi; hlt"));
        o.at_ = kCode;
        o.put(CODE("ud2"));
        if (misses)
            o.port.lose(line_of(o.m.core.idtr.base + kVector * 16), 300 * kNs);
        return o.run();
    };
    EXPECT_NEAR(double(time(true) - time(false)), 300. * kNs, 6. * kNs);
}

TEST(Interrupts, OneIsNotTakenBeforeItIsVisibleAfterAReturnFromAFault) {
    TimedParams p = overlapping();
    OverlappingMachine o(p);
    o.put(CODE("1: mov rax, rsp; mov ecx, ss; push rcx; push rax; push 0x10202; mov ecx, cs; push rcx; "
               "lea rdx, [rip + 3]; push rdx; iretq; jmp 1b")); // with RF and IF
    constexpr Tick kRaised = 500 * kNs;
    o.at(kRaised, [&o] {
        o.apic.interrupt(0x40);
        o.core.signalled(kRaised);
    });
    EXPECT_GE(o.run(), kRaised + p.interrupt_fs);
    EXPECT_EQ(o.m.core.rip, SystemMachine::kHandlers + 0x40 * 16 + 1);
}
