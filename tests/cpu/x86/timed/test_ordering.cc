// SPDX-License-Identifier: BSD-3-Clause
// What waits for buffered stores in detailed mode: serializing instructions, SFENCE, exceptions, and the decoder of code that they change.
#include <algorithm>
#include <vector>

#include <gtest/gtest.h>

#include "cpu/x86/timed/timed_machine.hh"

using namespace moscope;
using namespace moscope::x86;
using namespace moscope::x86::test;

namespace {

constexpr Addr kCode = 0x1000, kLine = 0x40040, kOther = 0x40440;
constexpr Tick kNs = kTicksPerNs, kUs = 1000 * kNs;

struct Ordering : testing::Test, TimedMachine {
    Ordering() {
        m.core.r[rbx] = kLine;
        m.core.r[rsi] = kOther;
        m.core.r[rax] = 1;
    }
    unsigned byte(Addr a) const { return static_cast<unsigned>(m.memory[a]); }
    /// Runs until f() or for 10 us.
    template <class F> void until(F &&f) {
        for (Tick t = queue.now(); !f() && t < 10 * kUs;)
            queue.run(t += kNs);
    }
    /// The code stores to kLine, which takes 500 ns, and loads kOther, which changes from 7 to 9 after 200 ns. What the load gets.
    std::uint64_t loaded() {
        port.lose(kLine, 500 * kNs);
        m.memory[kOther] = std::byte{7};
        begin();
        until([this] { return port.asked != 0; });
        queue.run(queue.now() + 200 * kNs);
        EXPECT_EQ(byte(kLine), 0u);
        m.memory[kOther] = std::byte{9};
        queue.run(queue.now() + kUs);
        EXPECT_EQ(byte(kLine), 1u);
        return m.core.r[rdi] & 0xff;
    }
};

/// A store to a line that is not there, then the instruction, then a load.
struct Serializes : Ordering, testing::WithParamInterface<std::vector<int>> {};

} // namespace

TEST_P(Serializes, ItWaitsForEarlierStores) {
    std::vector<int> code{0x88, 0x03}; // mov [rbx], al
    code.insert(code.end(), GetParam().begin(), GetParam().end());
    code.insert(code.end(), {0x48, 0x8b, 0x3e, 0xf4}); // mov rdi, [rsi]; hlt
    for (std::size_t i = 0; i < code.size(); ++i)
        m.write(kCode + i, static_cast<std::uint8_t>(code[i]));
    m.core.rip = kCode;
    EXPECT_EQ(loaded(), 9u);
}

INSTANTIATE_TEST_SUITE_P(Instructions, Serializes,
                         testing::Values(std::vector{0x31, 0xc0, 0x0f, 0xa2, 0xbe, 0x40, 0x04, 0x04,
                                                     0x00},                               // cpuid; mov esi, kOther
                                         std::vector{0x0f, 0x20, 0xdf, 0x0f, 0x22, 0xdf}, // mov rdi, cr3; back
                                         std::vector{0x0f, 0x01, 0x3e},                   // invlpg [rsi]
                                         std::vector{0x0f, 0xae, 0xf0}));                 // mfence

TEST_F(Ordering, ALoadPassesAnEarlierStoreWithoutAFence) {
    m.code(kCode, {0x88, 0x03, 0x48, 0x8b, 0x3e, 0xf4}); // mov [rbx], al; mov rdi, [rsi]; hlt
    EXPECT_EQ(loaded(), 7u);
}

TEST_F(Ordering, ANonTemporalStoreIsPerformedBeforeStoresBehindSfence) {
    m.code(kCode,
           {0x0f, 0xc3, 0x03, 0x0f, 0xae, 0xf8, 0x88, 0x06, 0xf4}); // movnti [rbx], eax; sfence; mov [rsi], al; hlt
    begin();
    until([this] { return byte(kOther) == 1; });
    EXPECT_EQ(byte(kOther), 1u);
    EXPECT_EQ(byte(kLine), 1u);
}

TEST_F(Ordering, AnInterruptEmptiesTheBufferOfNonTemporalStores) {
    m.code(kCode, {0xfb, 0x0f, 0xc3, 0x03, 0xeb, 0xfe}); // sti; movnti [rbx], eax; jmp to itself
    begin();
    queue.run(kUs);
    EXPECT_EQ(byte(kLine), 0u);
    at(kUs, [this] {
        apic.interrupt(0x41);
        core.signalled(queue.now());
    });
    queue.run(2 * kUs);
    EXPECT_EQ(byte(kLine), 1u);
}

TEST_F(Ordering, AnExceptionFrameGoesThroughTheCacheAlsoAfterANonTemporalStore) {
    std::vector<AccessKind> kinds;
    static std::vector<AccessKind> *seen;
    seen = &kinds;
    static void (*issue)(void *, Access &);
    issue = port.issue_;
    port.issue_ = [](void *self, Access &a) {
        seen->push_back(a.kind);
        issue(self, a);
    };
    m.core.r[rbx] = 0x7fff'ffff'f000; // not mapped
    m.code(kCode, {0x0f, 0xc3, 0x03, 0xf4});
    begin();
    queue.run(kUs);
    EXPECT_EQ(std::count(kinds.begin(), kinds.end(), AccessKind::nt_store), 0);
    EXPECT_EQ(m.pushed(1), kCode) << "it is in memory, not in the buffer of a non-temporal store";
}

/// mov byte [rbx + 1], 2; call rbx; mov esi, eax; call rbx; hlt. At rbx: mov eax, 1; ret
TEST_F(Ordering, CodeThatABufferedStoreChangesIsDecodedAsChanged) {
    m.code(kCode, {0xc6, 0x43, 0x01, 0x02, 0xff, 0xd3, 0x89, 0xc6, 0xff, 0xd3, 0xf4});
    m.code(kLine, {0xb8, 0x01, 0x00, 0x00, 0x00, 0xc3});
    m.core.rip = kCode;
    port.lose(kLine);
    begin();
    queue.run(kUs);
    EXPECT_EQ(m.core.r[rsi], 2u);
    EXPECT_EQ(m.core.r[rax], 2u);
}

/// Another core decodes the line while the store to it is still waiting for it.
TEST_F(Ordering, CodeDecodedWhileAStoreToItIsBufferedIsDroppedWhenTheStoreIsPerformed) {
    m.code(kCode, {0xc6, 0x43, 0x01, 0x02, 0xeb, 0xfe}); // mov byte [rbx + 1], 2; jmp to itself
    m.code(kLine, {0xb8, 0x01, 0x00, 0x00, 0x00, 0xc3});
    m.core.rip = kCode;
    port.lose(kLine);
    Core other(1, m, m.phys, m.blocks, m.core.model);
    static_cast<State &>(other) = m.core;
    other.rip = kLine;
    begin();
    until([this] { return port.asked != 0; });
    Block *const decoded = m.blocks.find(other);
    ASSERT_TRUE(decoded && !decoded->stale);
    const std::uint64_t key = decoded->key;
    queue.run(kUs);
    EXPECT_EQ(byte(kLine + 1), 2u);
    EXPECT_EQ(m.blocks.decoded_at(key), nullptr);
}

namespace {

/// A core of one of two logical processes, with a port that notes whether all processes are at rest when it is read.
struct PortAtRest : SystemMachine {
    std::uint64_t io_read(Core &c, std::uint16_t port, unsigned size) override {
        at_rest.push_back(processes.in_serial_phase());
        return SystemMachine::io_read(c, port, size);
    }
    LogicalProcesses processes;
    std::vector<bool> at_rest;
};

} // namespace

TEST(PortStrings, ReadTheirPortWhileAllProcessesAreAtRestAlsoIfTheStoreWaitsForItsLine) {
    PortAtRest m;
    m.processes.divide(2);
    m.kernel64();
    m.code(kCode, {0x6c, 0x6c, 0xf4}); // insb; insb; hlt
    m.core.r[rdx] = 0x1f0;
    m.core.r[rdi] = kLine + kLineBytes - 1;
    m.ports[0x1f0] = 0x5a;
    AmplePort port(m.processes.queue(1), m.memory.data());
    TimedCore core(m.processes.queue(1), port, m.core, blocking());
    core.processes = &m.processes;
    m.processes.start_threads(100 * kNs, 1, {});
    port.lose(kLine);
    port.lose(kLine + kLineBytes);
    core.take_over(0);
    m.processes.run(10 * kUs);
    EXPECT_EQ(m.at_rest, std::vector<bool>({true, true}));
    EXPECT_EQ(m.read<std::uint16_t>(kLine + kLineBytes - 1), 0x5a5au);
}
