// SPDX-License-Identifier: BSD-3-Clause
// The model that overlaps misses: which loads go out together, when, and that looking ahead leaves no trace but requests.
#include <gtest/gtest.h>

#include <set>

#include "cpu/x86/timed/overlapping_machine.hh"

using namespace moscope;
using namespace moscope::x86;
using namespace moscope::x86::test;

namespace {

struct Overlapping : testing::Test, OverlappingMachine {};

/// `chains` pointer chases, `loads` of each, in a loop; chain i starts in its own register.
struct Chases : Overlapping {
    static constexpr int kRegisters[12] = {rax, rdx, rbx, rbp, rsi, rdi, r8, r9, r10, r11, r12, r13};

    void chase(unsigned chains, unsigned loads, Tick latency) {
        for (unsigned i = 0; i < chains; ++i) {
            Addr line = kData + Addr{i} * 0x10000;
            m.core.r[kRegisters[i]] = line;
            for (unsigned n = 0; n <= loads; ++n, line += kLineBytes) {
                m.write<std::uint64_t>(line, line + kLineBytes);
                port.lose(line, latency);
            }
        }
        put({0xb9, static_cast<int>(loads), 0, 0, 0}); // mov ecx, loads
        const Addr top = at_;
        for (unsigned i = 0; i < chains; ++i) {
            const int r = kRegisters[i], low = r & 7;
            put({r > 7 ? 0x4d : 0x48, 0x8b, (low == 5 ? 0x40 : 0) | low << 3 | low}); // mov r, [r]
            if (low == 5)
                put({0});
            if (low == 4)
                put({0x24});
        }
        put({0xff, 0xc9});                                         // dec ecx
        put({0x75, static_cast<int>(top - at_ - 2) & 0xff, 0xf4}); // jnz top; hlt
    }
};

} // namespace

TEST_F(Chases, OneChainWaitsForEachOfItsLoads) {
    chase(1, 100, 100 * kNs);
    EXPECT_NEAR(double(run()), 100. * 100 * kNs, 0.01 * 100 * 100 * kNs);
}

TEST_F(Chases, EightChainsTakeTheTimeOfOne) {
    chase(8, 100, 100 * kNs);
    EXPECT_NEAR(double(run()), 100. * 100 * kNs, 0.03 * 100 * 100 * kNs);
    EXPECT_EQ(exposed(), core.spent(TimedCore::Charge::memory));
    EXPECT_EQ(transactions.size(), 800u);
}

TEST_F(Chases, TwelveChainsAreBoundByTheEightMissBuffers) {
    chase(12, 100, 100 * kNs);
    EXPECT_NEAR(double(run()), 150. * 100 * kNs, 0.05 * 150 * 100 * kNs);
}

TEST_F(Overlapping, AnIndependentLoadHidesBehindTheFirst) {
    port.lose(kData, 300 * kNs);
    port.lose(kData + 0x1000, 200 * kNs);
    m.core.r[rbx] = kData;
    m.core.r[rsi] = kData + 0x1000;
    put({0x48, 0x8b, 0x03, 0x48, 0x8b, 0x16, 0xf4}); // mov rax, [rbx]; mov rdx, [rsi]; hlt
    EXPECT_NEAR(double(run()), 300. * kNs, kWalks);
    ASSERT_EQ(transactions.size(), 2u);
    EXPECT_EQ(transactions[0].first.addr.value, kData + 0x1000);
    EXPECT_EQ(transactions[0].second, 0) << "hidden behind the other";
}

TEST_F(Overlapping, AFenceKeepsLoadsApart) {
    port.lose(kData, 300 * kNs);
    port.lose(kData + 0x1000, 200 * kNs);
    m.core.r[rbx] = kData;
    m.core.r[rsi] = kData + 0x1000;
    put({0x48, 0x8b, 0x03, 0x0f, 0xae, 0xe8, 0x48, 0x8b, 0x16, 0xf4}); // mov rax, [rbx]; lfence; mov rdx, [rsi]; hlt
    EXPECT_NEAR(double(run()), 500. * kNs, kWalks);
}

TEST_F(Overlapping, TheWindowBoundsHowFarTheCoreLooks) {
    for (const unsigned between : {70u, 71u}) { // operations between two loads; the window has room for 72
        SCOPED_TRACE(between);
        OverlappingMachine o;
        o.m.core.r[rbx] = kData;
        o.m.core.r[rsi] = kData + 0x1000;
        o.put({0xba, 3, 0, 0, 0}); // mov edx, 3
        o.put({0x48, 0x8b, 0x03}); // top: mov rax, [rbx]
        for (unsigned i = 0; i < between; ++i)
            o.put({0x89, 0xd1});         // mov ecx, edx
        o.put({0x48, 0x8b, 0x3e});       // mov rdi, [rsi]
        o.put({0x48, 0x83, 0xc3, 0x40}); // add rbx, 64
        o.put({0x48, 0x83, 0xc6, 0x40}); // add rsi, 64
        o.put({0xff, 0xca});             // dec edx
        const int back = -(6 + 2 + 4 + 4 + 3 + 2 * static_cast<int>(between) + 3);
        o.put({0x0f, 0x85, back & 0xff, back >> 8 & 0xff, 0xff, 0xff}); // jnz top
        o.put({0xf4});
        // The first two iterations hit, and make the code known. The third one misses.
        o.port.lose(kData + 128, 300 * kNs);
        o.port.lose(kData + 0x1080, 300 * kNs);
        const bool together = between == 70;
        EXPECT_NEAR(double(o.run()), (together ? 300. : 600.) * kNs, 2 * kWalks + double(between) * kNs);
    }
}

TEST_F(Overlapping, LookingAheadLeavesRegistersFlagsAndMemoryAsTheyAre) {
    // mov rax, [rbx]; mov rdx, [rsi]; add rcx, rax; mov [rdi], rcx; push rdx; pop r8; inc dword [rdi + 8];
    // movq xmm0, rdx; paddq xmm0, xmm0; mov rbp, [rdi]; cmp rdx, 5; setz r9b; hlt
    const auto program = [](auto &o) {
        for (const Addr line : {kData, kData + 0x1000, kData + 0x2000})
            o.port.lose(line, 300 * kNs);
        o.m.template write<std::uint64_t>(kData, 17);
        o.m.template write<std::uint64_t>(kData + 0x1000, 5);
        o.m.core.r[rbx] = kData;
        o.m.core.r[rsi] = kData + 0x1000;
        o.m.core.r[rdi] = kData + 0x2000;
        o.m.core.r[rcx] = 3;
        o.m.core.r[r9] = 0;
        o.put({0x48, 0x8b, 0x03, 0x48, 0x8b, 0x16, 0x48, 0x01, 0xc1, 0x48, 0x89, 0x0f, 0x52,
               0x41, 0x58, 0xff, 0x47, 0x08, 0x66, 0x48, 0x0f, 0x6e, 0xc2, 0x66, 0x0f, 0xd4,
               0xc0, 0x48, 0x8b, 0x2f, 0x48, 0x83, 0xfa, 0x05, 0x41, 0x0f, 0x94, 0xc1, 0xf4});
    };
    program(*this);
    run();
    EXPECT_EQ(m.core.r[rax], 17u);
    EXPECT_EQ(m.core.r[rdx], 5u);
    EXPECT_EQ(m.core.r[rcx], 20u);
    EXPECT_EQ(m.core.r[rbp], 20u);
    EXPECT_EQ(m.core.r[r8], 5u);
    EXPECT_EQ(m.core.r[r9], 1u);
    EXPECT_EQ(m.core.xmm[0].u64[0], 10u);
    EXPECT_EQ(m.read<std::uint64_t>(kData + 0x2000), 20u);
    EXPECT_EQ(m.read<std::uint32_t>(kData + 0x2008), 1u) << "incremented once";
}

TEST_F(Overlapping, OperationsRunAheadAreRunAgainFromTheSameFlagsAndXmmRegisters) {
    port.lose(kData, 300 * kNs);
    m.core.r[rbx] = kData;
    m.core.r[rcx] = 7;
    m.core.r[r9] = 0;
    m.core.xmm[0].u64[0] = 21;
    // cmp rcx, rcx; mov rax, [rbx]; setz r9b; cmp rcx, 5; paddq xmm0, xmm0; hlt
    put({0x48, 0x39, 0xc9, 0x48, 0x8b, 0x03, 0x41, 0x0f, 0x94, 0xc1, 0x48, 0x83, 0xf9, 0x05, 0x66, 0x0f, 0xd4, 0xc0,
         0xf4});
    run();
    EXPECT_EQ(m.core.r[r9], 1u);
    EXPECT_EQ(m.core.xmm[0].u64[0], 42u);
}

TEST_F(Overlapping, NothingIsRequestedAtAnAddressThatDependsOnAMissingLine) {
    constexpr Addr kOld = kData + 0x4000;
    for (const Addr line : {kData, kData + 0x1000, kOld, Addr{0}})
        port.lose(line, 300 * kNs);
    m.core.r[rbx] = kData;
    m.core.r[rsi] = kData + 0x1000;
    m.core.r[rax] = m.core.r[rdx] = kOld;
    m.write<std::uint64_t>(kData, kData + 0x2000);
    m.write<std::uint64_t>(kData + 0x1000, kData + 0x3000);
    // mov rax, [rbx]; mov rdx, [rsi]; mov rcx, [rax]; mov rbp, [rdx]; lea rdi, [rdx + 8]; mov rdi, [rdi]; hlt
    put({0x48, 0x8b, 0x03, 0x48, 0x8b, 0x16, 0x48, 0x8b, 0x08, 0x48,
         0x8b, 0x2a, 0x48, 0x8d, 0x7a, 0x08, 0x48, 0x8b, 0x3f, 0xf4});
    run();
    for (const auto &[access, stall] : transactions)
        EXPECT_TRUE(line_of(access.addr.value) == kData || line_of(access.addr.value) == kData + 0x1000)
            << std::hex << access.addr.value;
}

TEST_F(Overlapping, ALoadWhoseValueChangesBeforeItsLineIsGrantedReturnsTheNewValue) {
    port.lose(kData, 300 * kNs);
    port.lose(kData + 0x1000, 200 * kNs);
    m.core.r[rbx] = kData;
    m.core.r[rsi] = kData + 0x1000;
    // The younger load's line comes first and is taken away again before the older one's: it has to be loaded anew.
    at(250 * kNs, [&] {
        port.lose(kData + 0x1000, 200 * kNs);
        m.write<std::uint64_t>(kData + 0x1000, 99);
        m.write<std::uint64_t>(kData, 98);
    });
    put({0x48, 0x8b, 0x03, 0x48, 0x8b, 0x16, 0xf4});
    EXPECT_NEAR(double(run()), 500. * kNs, kWalks);
    EXPECT_EQ(m.core.r[rax], 98u);
    EXPECT_EQ(m.core.r[rdx], 99u);
}

TEST_F(Overlapping, ABranchOnAMissingLineGoesThePredictedWay) {
    constexpr unsigned kLines = 64;
    for (unsigned i = 0; i < kLines; ++i) {
        m.write<std::uint64_t>(kData + Addr{i} * kLineBytes, 1);
        port.lose(kData + Addr{i} * kLineBytes, 300 * kNs);
    }
    m.core.r[rbx] = kData;
    put({0xb9, kLines, 0, 0, 0});  // mov ecx, kLines
    put({0x48, 0x8b, 0x03});       // top: mov rax, [rbx]
    put({0x48, 0x85, 0xc0});       // test rax, rax
    put({0x74, 0x08});             // jz out, never taken
    put({0x48, 0x83, 0xc3, 0x40}); // add rbx, 64
    put({0xff, 0xc9, 0x75, 0xf0}); // dec ecx; jnz top
    put({0xf4});                   // out: hlt
    EXPECT_NEAR(double(run()), (1 + kLines / 8) * 300. * kNs, 100. * kNs) << "the first alone, then eight at a time";
    EXPECT_EQ(m.core.r[rcx], 0u);
}

TEST_F(Overlapping, AMispredictedBranchIsResolvedWhenItsFlagsAreKnown) {
    const auto time = [](unsigned cycles) {
        TimedParams p = overlapping();
        p.core.mispredicted_cycles = cycles;
        OverlappingMachine o(p);
        o.port.lose(kData, 300 * kNs);
        o.m.core.r[rbx] = kData;
        o.put({0x48, 0x83, 0x3b, 0x00, 0x74, 0x01, 0x90, 0xf4}); // cmp qword [rbx], 0; jz taken; nop; taken: hlt
        return o.run();
    };
    EXPECT_EQ(time(30) - time(10), 20 * kNs) << "in the shadow of the load it would cost nothing";
}
