// SPDX-License-Identifier: BSD-3-Clause
// The registers of the local APIC follow the base that a core sets (AMD 24593, section 16.3.1), also over memory.
#include <gtest/gtest.h>

#include "cpu/x86/mmu/paging.hh"
#include "cpu/x86/system_machine.hh"

namespace moscope::x86::test {
namespace {

constexpr Addr kCode = 0x1000, kMoved = 0x60000, kAtReset = 0xfee00000;

/// Device registers read as the low half of their physical address.
struct Registers : SystemMachine {
    std::uint64_t mmio_read(Core &, PhysAddr a, unsigned) override { return a.value & 0xffffffff; }
};

struct ApicBase : testing::Test {
    Registers m;
    Core &c = m.core;
    FakeApic apic{m.core};

    ApicBase() {
        m.kernel64();
        m.write<std::uint32_t>(kMoved + 0x30, 0x1234);
    }
    void set_base(std::uint64_t value) {
        m.code(kCode, {0x0f, 0x30, 0xf4}); // wrmsr; hlt
        c.r[rax] = value;
        c.r[rdx] = 0;
        c.r[rcx] = 0x1b;
        run();
    }
    std::uint64_t read(Addr at) {
        m.code(kCode, {0x8b, 0x07, 0xf4}); // mov eax, [rdi]; hlt
        c.r[rdi] = at;
        run();
        return c.r[rax];
    }
    void run() {
        c.halted = false;
        c.rip = kCode;
        EXPECT_EQ(m.run(), Exit::halt);
    }
};

TEST_F(ApicBase, RegistersLieOverTheMemoryThatTheyAreMovedTo) {
    EXPECT_EQ(read(kAtReset + 0x30), kAtReset + 0x30);
    EXPECT_EQ(read(kMoved + 0x30), 0x1234u);
    set_base(kMoved | 0x900);
    EXPECT_EQ(read(kMoved + 0x30), kAtReset + 0x30) << "the device's own address";
    EXPECT_EQ(read(kMoved + 0x1000), 0u) << "the next page is memory";
    EXPECT_NE(read(kAtReset + 0x30), kAtReset + 0x30) << "nothing is left there";
    set_base(kAtReset | 0x900);
    EXPECT_EQ(read(kMoved + 0x30), 0x1234u);
    EXPECT_EQ(read(kAtReset + 0x30), kAtReset + 0x30);
}

TEST_F(ApicBase, TheBaseOfADisabledApicIsMemory) {
    set_base(kMoved | 0x100);
    EXPECT_EQ(read(kMoved + 0x30), 0x1234u);
}

TEST_F(ApicBase, OtherCoresHaveTheirOwn) {
    set_base(kMoved | 0x900);
    Core other{1, m, m.phys, m.blocks, m.model};
    PhysAddr at(0);
    ASSERT_TRUE(peek_translation(other, kMoved, at));
    EXPECT_EQ(at.value, kMoved);
    ASSERT_TRUE(peek_translation(c, kMoved, at));
    EXPECT_EQ(at.value, kAtReset);
}

} // namespace
} // namespace moscope::x86::test
