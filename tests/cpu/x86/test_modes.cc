// SPDX-License-Identifier: BSD-3-Clause
// Modes: from real through protected to long mode, as in a kernel's trampoline, and all the way back.
#include <gtest/gtest.h>

#include "cpu/x86/system_machine.hh"

using namespace moscope;
using namespace moscope::x86;
using test::SystemMachine;

namespace {

TEST(Modes, FromRealToLongModeAndBack) {
    SystemMachine m;
    m.long_mode(); // for its page tables
    reset(m.core, false);
    m.code(0x1000, {
                       0xfa,                                           // cli
                       0x31, 0xc0,                                     // xor ax,ax
                       0x8e, 0xd8,                                     // mov ds,ax
                       0x8e, 0xd0,                                     // mov ss,ax
                       0xbc, 0x00, 0x70,                               // mov sp,0x7000
                       0x0f, 0x01, 0x16, 0x00, 0x05,                   // lgdt [0x500]
                       0x0f, 0x20, 0xc0,                               // mov eax,cr0
                       0x0c, 0x01,                                     // or al,1
                       0x0f, 0x22, 0xc0,                               // mov cr0,eax
                       0x66, 0xea, 0x1f, 0x10, 0x00, 0x00, 0x08, 0x00, // .byte 0x66,0xea; .long prot; .word 8
                       0x66, 0xb8, 0x10, 0x00,                         // mov ax,16
                       0x8e, 0xd8,                                     // mov ds,ax
                       0x8e, 0xc0,                                     // mov es,ax
                       0x8e, 0xd0,                                     // mov ss,ax
                       0xbc, 0x00, 0x00, 0x07, 0x00,                   // mov esp,0x70000
                       0x0f, 0x20, 0xe0,                               // mov eax,cr4
                       0x83, 0xc8, 0x20,                               // or eax,0x20
                       0x0f, 0x22, 0xe0,                               // mov cr4,eax
                       0xb8, 0x00, 0x00, 0x3f, 0x00,                   // mov eax,0x3f0000
                       0x0f, 0x22, 0xd8,                               // mov cr3,eax
                       0xb9, 0x80, 0x00, 0x00, 0xc0,                   // mov ecx,0xc0000080
                       0x0f, 0x32,                                     // rdmsr
                       0x0f, 0xba, 0xe8, 0x08,                         // bts eax,8
                       0x0f, 0x30,                                     // wrmsr
                       0x0f, 0x20, 0xc0,                               // mov eax,cr0
                       0x0f, 0xba, 0xe8, 0x1f,                         // bts eax,31
                       0x0f, 0x22, 0xc0,                               // mov cr0,eax
                       0x0f, 0x32,                                     // rdmsr
                       0x89, 0xc3,                                     // mov ebx,eax
                       0xea, 0x61, 0x10, 0x00, 0x00, 0x18, 0x00,       // .byte 0xea; .long long64; .word 24
                       0x48, 0xb8, 0x88, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11, // mov rax,0x1122334455667788
                       0x49, 0x89, 0xc0,                                           // mov r8,rax
                       0x48, 0xc7, 0xc4, 0x00, 0x00, 0x06, 0x00,                   // mov rsp,0x60000
                       0x6a, 0x08,                                                 // push 8
                       0x48, 0x8d, 0x05, 0x03, 0x00, 0x00, 0x00,                   // lea rax,[rip+compat]
                       0x50,                                                       // push rax
                       0x48, 0xcb,                                                 // .byte 0x48,0xcb
                       0x89, 0xe6,                                                 // mov esi,esp
                       0x0f, 0x20, 0xc0,                                           // mov eax,cr0
                       0x0f, 0xba, 0xf0, 0x1f,                                     // btr eax,31
                       0x0f, 0x22, 0xc0,                                           // mov cr0,eax
                       0xb9, 0x80, 0x00, 0x00, 0xc0,                               // mov ecx,0xc0000080
                       0x0f, 0x32,                                                 // rdmsr
                       0x89, 0xc7,                                                 // mov edi,eax
                       0x66, 0xb8, 0x30, 0x00,                                     // mov ax,48
                       0x8e, 0xd8,                                                 // mov ds,ax
                       0x8e, 0xc0,                                                 // mov es,ax
                       0x8e, 0xd0,                                                 // mov ss,ax
                       0xea, 0xa7, 0x10, 0x00, 0x00, 0x28, 0x00,                   // .byte 0xea; .long prot16; .word 40
                       0x0f, 0x20, 0xc0,                                           // mov eax,cr0
                       0x24, 0xfe,                                                 // and al,0xfe
                       0x0f, 0x22, 0xc0,                                           // mov cr0,eax
                       0xea, 0xb4, 0x10, 0x00, 0x00,                               // .byte 0xea; .word real2; .word 0
                       0x31, 0xc0,                                                 // xor ax,ax
                       0x8e, 0xd0,                                                 // mov ss,ax
                       0x8e, 0xd8,                                                 // mov ds,ax
                       0x8c, 0xc8,                                                 // mov ax,cs
                       0x89, 0xc5,                                                 // mov bp,ax
                       0xf4,                                                       // hlt
                   });
    m.core.seg[cs].base = 0;
    m.core.seg[cs].selector = 0;
    m.core.rip = 0x1000;
    EXPECT_EQ(m.run(), Exit::halt);
    const Core &c = m.core;
    EXPECT_EQ(c.r[rbx], efer::lme | efer::lma);
    EXPECT_EQ(c.r[r8], 0x1122334455667788u) << "64-bit code ran";
    EXPECT_EQ(c.r[rsi], 0x60000u) << "the far return took both from the stack";
    EXPECT_EQ(c.r[rdi], efer::lme) << "without paging long mode is not active";
    EXPECT_EQ(c.r[rbp] & 0xffff, 0u);
    EXPECT_FALSE(c.protected_mode());
    EXPECT_EQ(c.mode(), Mode::code16);
    EXPECT_EQ(c.rip, 0x10bfu);
}

// As on hosts, with a segment of modify_ldt.
TEST(Modes, CodeEndsAtTheLimitOfItsSegment) {
    constexpr Addr kBase = 0x30000;
    SystemMachine m;
    m.kernel32();
    Core &c = m.core;
    const auto ends_at = [&](std::uint32_t limit, std::uint16_t size, Addr at, std::initializer_list<int> bytes) {
        m.set(m.kSpare, SystemMachine::descriptor(kBase, limit, 0x9b | size));
        c.seg[cs] = m.segment(m.kSpare);
        c.mode_changed();
        c.halted = false;
        c.r[rsp] = 0x70000;
        c.r[rbx] = 0;
        m.code(kBase + at, bytes);
        c.rip = at;
        EXPECT_EQ(m.vector_taken(), exc_gp);
        EXPECT_EQ(m.pushed<std::uint32_t>(0), 0u);
        return m.pushed<std::uint32_t>(1);
    };
    constexpr std::uint16_t k32 = Segment::kBig;
    m.code(kBase, {0x43, 0xf4}); // what 16-bit code meets if it goes on at 0
    for (const auto &[limit, size] : {std::pair{0x7ffu, k32}, {0xffffu, std::uint16_t{0}}}) {
        EXPECT_EQ(ends_at(limit, size, limit - 2, {0x43, 0x43, 0x43, 0x43}), limit + 1); // inc ebx, each
        EXPECT_EQ(c.r[rbx], 3u);
        EXPECT_EQ(ends_at(limit, size, limit - 2, {0x43, 0xbb, 1, 2, 3, 4}), limit - 1) << "MOV does not fit";
        EXPECT_EQ(c.r[rbx], 1u);
        EXPECT_EQ(ends_at(limit, size, limit, {0x0f, 0x0b}), limit) << "and neither does UD2";
    }
}

} // namespace
