// SPDX-License-Identifier: BSD-3-Clause
// Writes to code that has already been decoded (AMD 24593, section 7.6.1): by the program itself, through
// another mapping, by a repeated string store, from outside; and translations that change under decoded blocks.
#include <gtest/gtest.h>

#include "cpu/x86/native/model_cpu.hh"
#include "cpu/x86/system_machine.hh"

namespace moscope::x86 {
namespace {

using native::Bytes;
using native::kCode;
using native::kData;
using native::ModelCpu;

struct Program : ::testing::Test {
    void put(std::uint64_t at, const Bytes &b) {
        for (std::size_t i = 0; i < b.size(); ++i)
            *model.memory(ModelCpu::kCodePhys + (at - kCode) + i) = b[i];
        model.blocks().written_range(PhysAddr(ModelCpu::kCodePhys + (at - kCode)), b.size());
    }
    /// Page `page` of the data also shows code page 0, writable.
    void alias(unsigned page) {
        const std::uint64_t entry = ModelCpu::kCodePhys | 0x67;
        std::memcpy(model.memory(ModelCpu::kTables + 0x4000 + page * 8), &entry, 8);
        core().flush_tlb(true);
    }
    void run(std::uint64_t from, std::uint64_t instructions = 200) {
        core().rip = from;
        EXPECT_EQ(core().run(instructions), Exit::none);
    }
    Core &core() { return model.core(); }
    std::uint64_t rax_() { return core().r[rax]; }

    ModelCpu model;
};

Bytes operator+(Bytes a, const Bytes &b) {
    a.insert(a.end(), b.begin(), b.end());
    return a;
}

const Bytes kEnd{0xeb, 0xfe}; // JMP to itself
Bytes address(std::uint64_t a) {
    return {static_cast<std::uint8_t>(a), static_cast<std::uint8_t>(a >> 8), static_cast<std::uint8_t>(a >> 16),
            static_cast<std::uint8_t>(a >> 24)};
}
Bytes mov_eax(std::uint8_t x) { return {0xb8, x, 0, 0, 0}; }

TEST_F(Program, AWriteToTheNextInstructionIsSeenByIt) {
    // MOV BYTE PTR [RIP + 1], 2 ; MOV EAX, 1
    put(kCode, Bytes{0xc6, 0x05, 1, 0, 0, 0, 2} + mov_eax(1) + kEnd);
    run(kCode);
    EXPECT_EQ(rax_(), 2u);
}

TEST_F(Program, AWriteToAnEarlierInstructionIsSeenTheNextTimeRound) {
    // XOR EBX, EBX ; again: MOV EAX, 1 ; ADD EBX, EAX ; INC BYTE PTR [again + 1] ; CMP EBX, 15 ; JB again
    const Bytes loop = mov_eax(1) + Bytes{0x01, 0xc3, 0xfe, 0x05, 0xf4, 0xff, 0xff, 0xff, 0x83, 0xfb, 15, 0x72, 0xee};
    put(kCode, Bytes{0x31, 0xdb} + loop + kEnd);
    run(kCode);
    EXPECT_EQ(core().r[rbx], 15u); // 1 + 2 + 3 + 4 + 5
    EXPECT_EQ(rax_(), 5u);
}

TEST_F(Program, AWriteThroughAnotherMappingIsSeen) {
    alias(1);
    // MOV BYTE PTR [kData + 0x1000 + 9], 7 ; MOV EAX, 1: the immediate is byte 9
    put(kCode, Bytes{0xc6, 0x04, 0x25} + address(kData + 0x1009) + Bytes{7} + mov_eax(1) + kEnd);
    run(kCode);
    EXPECT_EQ(rax_(), 7u);
}

TEST_F(Program, ARepeatedStoreOverDecodedCodeIsSeen) {
    alias(1);
    put(kCode + 0x400, mov_eax(1) + kEnd);
    run(kCode + 0x400); // decoded now
    EXPECT_EQ(rax_(), 1u);
    put(kCode, Bytes{0xf3, 0xaa} + Bytes{0xeb, 0xfe}); // REP STOSB
    core().r[rdi] = kData + 0x1401;
    core().r[rcx] = 1;
    core().r[rax] = 9;
    run(kCode);
    run(kCode + 0x400);
    EXPECT_EQ(rax_(), 9u);
}

TEST_F(Program, ARepeatedMoveOverItselfEndsInTheNewCode) {
    alias(1);
    // REP MOVSB copies, onto itself and what follows, the same REP MOVSB and another MOV.
    put(kCode, Bytes{0xf3, 0xa4} + mov_eax(1) + kEnd);
    put(kCode + 0x600, Bytes{0xf3, 0xa4} + mov_eax(3) + kEnd);
    core().r[rsi] = kCode + 0x600;
    core().r[rdi] = kData + 0x1000;
    core().r[rcx] = 9;
    run(kCode);
    EXPECT_EQ(rax_(), 3u);
    EXPECT_EQ(core().r[rcx], 0u);
}

TEST_F(Program, AWriteFromOutsideIsSeen) {
    put(kCode, mov_eax(1) + kEnd);
    run(kCode);
    *model.memory(ModelCpu::kCodePhys + 1) = 4;
    model.blocks().written_range(PhysAddr(ModelCpu::kCodePhys + 1), 1);
    run(kCode);
    EXPECT_EQ(rax_(), 4u);
}

TEST_F(Program, AWriteToTheSecondPageOfACrossingInstructionIsSeen) {
    put(kCode + 0xffe, mov_eax(1) + kEnd); // B8 01 | 00 00 00
    run(kCode + 0xffe);
    EXPECT_EQ(rax_(), 1u);
    // Through the program: MOV BYTE PTR [kCode + 0x1000], 2, the second byte of the immediate
    put(kCode, Bytes{0xc6, 0x04, 0x25} + address(kCode + 0x1000) + Bytes{2} + kEnd);
    run(kCode);
    run(kCode + 0xffe);
    EXPECT_EQ(rax_(), 0x201u);
}

TEST_F(Program, AWriteThatSpansThePagesOfACrossingInstructionIsSeen) {
    put(kCode + 0xffe, mov_eax(1) + kEnd);
    run(kCode + 0xffe);
    // MOV WORD PTR [kCode + 0xfff], 0x0605
    put(kCode, Bytes{0x66, 0xc7, 0x04, 0x25} + address(kCode + 0xfff) + Bytes{5, 6} + kEnd);
    run(kCode);
    run(kCode + 0xffe);
    EXPECT_EQ(rax_(), 0x605u);
}

TEST_F(Program, AnotherPageMappedAtTheSameAddressRunsItsOwnCode) {
    put(kCode, mov_eax(1) + kEnd);
    put(kCode + 0x1000, mov_eax(2) + kEnd);
    run(kCode);
    EXPECT_EQ(rax_(), 1u);
    const std::uint64_t entry = (ModelCpu::kCodePhys + 0x1000) | 0x67;
    std::memcpy(model.memory(ModelCpu::kTables + 0x3000), &entry, 8);
    core().flush_tlb(true);
    run(kCode);
    EXPECT_EQ(rax_(), 2u);
}

TEST_F(Program, ACrossingInstructionChangesWhenItsSecondPageIsRemapped) {
    put(kCode + 0xffe, mov_eax(1) + kEnd);
    run(kCode + 0xffe);
    // The second page becomes the read-only page of data, 5A everywhere.
    const std::uint64_t entry = (ModelCpu::kDataPhys + 0x2000) | 0x65;
    std::memcpy(model.memory(ModelCpu::kTables + 0x3008), &entry, 8);
    core().flush_tlb(true);
    core().rip = kCode + 0xffe;
    core().run(1);
    EXPECT_EQ(rax_(), 0x5a5a5a01u);
}

TEST_F(Program, LongRepeatedStoresCanBeInterruptedInEveryPage) {
    // Two pages of REP STOSB leave the instruction at least once, at itself, with registers up to date.
    put(kCode, Bytes{0xf3, 0xaa} + kEnd);
    native::Snapshot in{};
    in.flags = 0x202;
    in.fx.mxcsr = 0x1f80;
    in.r[rdi] = kData;
    in.r[rcx] = 0x2000;
    in.r[rax] = 0x77;
    Core &c = core();
    std::memcpy(c.r, in.r, sizeof in.r);
    c.rip = kCode;
    c.exit = Exit::none;
    Block *b = model.blocks().find(c, true);
    ASSERT_NE(b, nullptr);
    c.r[reg_block] = kCode;
    const Op *op = b->ops();
    EXPECT_EQ(op->exec(c, op), nullptr);
    EXPECT_EQ(c.exit, Exit::restart);
    EXPECT_EQ(c.rip, kCode);
    EXPECT_EQ(c.r[rcx], 0x1000u);
    EXPECT_EQ(c.r[rdi], kData + 0x1000);
    run(kCode);
    EXPECT_EQ(c.r[rcx], 0u);
    EXPECT_EQ(*(model.data() + 0x1fff), 0x77);
}

TEST(SelfModifying, CodeInDeviceMemoryIsReadAnewEachTime) {
    struct Rom : test::FlatMachine {
        std::uint64_t mmio_read(Core &, PhysAddr a, unsigned) override {
            return a.value == 0xc0000000 ? 0x90 : a.value == 0xc0000001 ? last : 0x90;
        }
        std::uint64_t last = 0xf4;
    } m;
    m.long_mode();
    m.core.rip = 0xc0000000; // nop; hlt
    EXPECT_EQ(m.core.run(100), Exit::halt);
    m.core.halted = false;
    m.last = 0xcc; // and now nop; int3, without a table for it
    m.core.rip = 0xc0000000;
    EXPECT_EQ(m.core.run(100), Exit::shutdown);
}

TEST(SelfModifying, AnInstructionWithBothHalvesInOnePageIsDroppedOnce) {
    test::SystemMachine m;
    m.kernel64();
    m.small_pages();
    m.page(0x6000, 0x5007); // 5000h and 6000h are the same page
    m.code(0x5000, {0x11, 0x22, 0x33, 0xf4});
    m.code(0x5ffe, {0xb8, 0x00}); // mov eax, 33221100h; hlt
    EXPECT_EQ(m.run(), Exit::halt);
    EXPECT_EQ(m.core.r[rax], 0x33221100u);
    m.blocks.written(PhysAddr(0x5000), 1);
    EXPECT_EQ(m.blocks.garbage(), 2u) << "MOV and HLT, each once";
    m.blocks.collect();
}

} // namespace
} // namespace moscope::x86
