// SPDX-License-Identifier: BSD-3-Clause
// Probes of instructions: they are found by the content of their page, are called once for each time that the instruction is carried
// out, and change nothing that the program or the clock can see.
#include <gtest/gtest.h>

#include <map>

#include "cpu/x86/decode/probes.hh"
#include "cpu/x86/timed/timed_machine.hh"

using namespace moscope;
using namespace moscope::x86;
using namespace moscope::x86::test;

namespace {

constexpr Addr kCode = 0x1000, kFunction = 0x1100, kStack = 0x50000;

/// A program of calls: f is INC RBX; RET.
struct Calls : SystemMachine {
    void probed(Core &, unsigned probe, const Probed &before) override {
        ++calls[probe];
        last = before;
    }
    /// MOV ECX, n; again: MOV EDI, ECX; CALL f; DEC ECX; JNZ again; HLT
    void program(std::uint8_t n) {
        code(kFunction, {0x48, 0xff, 0xc3, 0xc3});
        code(kCode, {0xb9, n, 0, 0, 0, 0x89, 0xcf, 0xe8, 0xf4, 0, 0, 0, 0xff, 0xc9, 0x75, 0xf5, 0xf4});
    }
    /// Of the page of code as it is now.
    unsigned probe(Addr at, bool calls_it = true) {
        const Addr page = at & ~Addr{4095};
        const auto bytes =
            std::make_shared<std::vector<std::byte>>(memory.begin() + page, memory.begin() + page + 4096);
        return probes->add({bytes, static_cast<unsigned>(at & 4095), calls_it});
    }
    void use() { blocks.probe(probes); }

    std::shared_ptr<Probes> probes = std::make_shared<Probes>(phys);
    std::map<unsigned, unsigned> calls;
    Probed last{};
};

struct Looked {
    Exit exit;
    std::uint64_t retired, rbx, rip;
    bool operator==(const Looked &) const = default;
};

Looked functional(bool with, std::map<unsigned, unsigned> &calls) {
    Calls m;
    m.kernel64();
    m.program(7);
    if (with) {
        m.probe(kFunction);
        m.use();
    }
    const Exit exit = m.run();
    calls = m.calls;
    return {exit, m.core.retired, m.core.r[rbx], m.core.rip};
}

TEST(Probes, AreCalledOncePerCallAndChangeNothing) {
    std::map<unsigned, unsigned> none, seven;
    const Looked without = functional(false, none), with = functional(true, seven);
    EXPECT_EQ(without, with);
    EXPECT_EQ(with.rbx, 7u);
    EXPECT_TRUE(none.empty());
    EXPECT_EQ(seven, (std::map<unsigned, unsigned>{{0, 7}}));
}

TEST(Probes, SeeTheRegistersBeforeTheInstruction) {
    Calls m;
    m.kernel64();
    m.program(1);
    m.probe(kFunction);
    m.use();
    const Addr top = m.core.r[rsp];
    m.run();
    EXPECT_EQ(m.last.rdi, 1u);
    EXPECT_EQ(m.last.rsp, top - 8);
    EXPECT_EQ(m.read<std::uint64_t>(m.last.rsp), kCode + 12) << "where it returns to";
}

TEST(Probes, FollowTheContentOfTheirPageToAnyAddress) {
    Calls m;
    m.kernel64();
    m.program(3);
    m.probe(kFunction);
    m.use();
    std::copy_n(m.memory.begin() + kCode, 4096, m.memory.begin() + 0x8000); // the same page, for another process
    m.core.rip = 0x8000;
    m.run();
    EXPECT_EQ(m.calls[0], 3u);
    m.code(0x8ff0, {0x90}); // and now another one
    m.core.rip = 0x8000;
    m.core.halted = false;
    m.run();
    EXPECT_EQ(m.calls[0], 3u);
    EXPECT_EQ(m.core.r[rbx], 6u);
}

TEST(Probes, ThatOnlyObserveAreNotCalledButRecordWhetherACoreReachedThem) {
    Calls m;
    m.kernel64();
    m.program(2);
    const unsigned there = m.probe(kFunction, false), elsewhere = m.probe(kFunction + 0x80, false);
    m.use();
    m.run();
    EXPECT_TRUE(m.calls.empty());
    EXPECT_TRUE(m.probes->reached(there));
    EXPECT_FALSE(m.probes->reached(elsewhere));
}

TEST(Probes, AtOneInstructionAreAllCalled) {
    Calls m;
    m.kernel64();
    m.program(2);
    const unsigned one = m.probe(kFunction), other = m.probe(kFunction);
    m.use();
    m.run();
    EXPECT_EQ(m.calls[one], 2u);
    EXPECT_EQ(m.calls[other], 2u);
}

TEST(Probes, AreNotCalledForAnInstructionThatFaults) {
    Calls m;
    m.kernel64();
    m.small_pages();
    m.code(kFunction, {0x50, 0xf4}); // push rax; hlt
    m.probe(kFunction);
    m.use();
    m.page(kStack, 0);                                 // the stack is not there yet
    m.gate64(exc_pf, 0x8e, SystemMachine::kCode64, 1); // its handler has a stack of its own
    m.core.r[rsp] = kStack + 8;
    m.core.rip = kFunction;
    EXPECT_EQ(m.vector_taken(), exc_pf);
    EXPECT_TRUE(m.calls.empty());
    m.page(kStack, kStack | 7);
    m.core.r[rsp] = kStack + 8;
    m.core.rip = kFunction;
    m.core.halted = false;
    m.run();
    EXPECT_EQ(m.calls[0], 1u);
}

/// The same machine in detailed mode.
struct TimedCalls {
    explicit TimedCalls(const char *model, bool with) {
        params.core.model = model;
        core = std::make_unique<TimedCore>(queue, port, m.core, params);
        m.kernel64();
        m.program(200);
        if (with) {
            m.probe(kFunction);
            m.use();
        }
    }
    TimedParams params;
    Calls m;
    FakeApic apic{m.core};
    EventQueue queue;
    AmplePort port{queue, m.memory.data()};
    std::unique_ptr<TimedCore> core;
};

TEST(Probes, TakeNoSimulatedTimeInEitherModelOfTheCore) {
    for (const char *model : {"blocking", "out_of_order"}) {
        std::vector<std::uint64_t> cycles;
        for (const bool with : {false, true}) {
            TimedCalls t(model, with);
            t.core->take_over(0);
            t.queue.run(20'000 * kTicksPerNs);
            EXPECT_TRUE(t.m.core.halted);
            t.core->settle(t.queue.now());
            cycles.push_back(static_cast<std::uint64_t>(t.core->spent(TimedCore::Charge::idle)));
            EXPECT_EQ(t.m.calls[0], with ? 200u : 0u) << model;
        }
        EXPECT_EQ(cycles[0], cycles[1]) << model;
    }
}

TEST(Probes, CountEachIterationOfASpinLoop) {
    std::vector<std::uint64_t> retired, called;
    for (const bool with : {false, true}) {
        TimedCalls t("blocking", with);
        t.m.code(kCode, {0x8b, 0x06, 0xf3, 0x90, 0xeb, 0xfa}); // again: mov eax, [rsi]; pause; jmp again
        t.m.core.r[rsi] = 0x40000;
        if (with) {
            t.m.probe(kCode);
            t.m.use();
        }
        t.core->take_over(0);
        t.queue.run(10'000 * kTicksPerNs);
        t.core->wake_sleeper(t.queue.now());
        retired.push_back(t.m.core.retired);
        called.push_back(t.m.calls[1]);
    }
    EXPECT_EQ(retired[0], retired[1]);
    EXPECT_GE(called[1], retired[1] / 3);
    EXPECT_LE(called[1], retired[1] / 3 + 1);
}

} // namespace
