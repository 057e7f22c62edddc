// SPDX-License-Identifier: BSD-3-Clause
#include "cpu/x86/exec/x87/x87_host.hh"

#include <xmmintrin.h>

// One stub of four bytes per instruction: 8 x 64 with register operands (ModRM C0-FF), then 8 x 8 with a memory operand
// at RDI (ModRM 07, 0F, ... 3F); and a function that loads the state, runs one of them and stores the state.
asm(R"(
    .pushsection .text
    .balign 16
moscope_x87_register_stubs:
    .set moscope_x87_opcode, 0xd8
    .rept 8
    .set moscope_x87_modrm, 0xc0
    .rept 64
    .byte moscope_x87_opcode, moscope_x87_modrm
    ret
    nop
    .set moscope_x87_modrm, moscope_x87_modrm + 1
    .endr
    .set moscope_x87_opcode, moscope_x87_opcode + 1
    .endr
moscope_x87_memory_stubs:
    .set moscope_x87_opcode, 0xd8
    .rept 8
    .set moscope_x87_modrm, 0x07
    .rept 8
    .byte moscope_x87_opcode, moscope_x87_modrm
    ret
    nop
    .set moscope_x87_modrm, moscope_x87_modrm + 8
    .endr
    .set moscope_x87_opcode, moscope_x87_opcode + 1
    .endr
    .balign 16
moscope_x87_run: /* RDI image, RSI stub, RDX operand, RCX flags */
    .cfi_startproc
    pushq %rbx
    .cfi_adjust_cfa_offset 8
    .cfi_rel_offset %rbx, 0
    pushq %rcx
    .cfi_adjust_cfa_offset 8
    subq $8, %rsp
    .cfi_adjust_cfa_offset 8
    movq %rdi, %rbx
    fxrstor64 (%rdi)
    movq %rdx, %rdi
    pushq (%rcx)
    .cfi_adjust_cfa_offset 8
    popfq
    .cfi_adjust_cfa_offset -8
    call *%rsi
    movq 8(%rsp), %rcx
    pushfq
    .cfi_adjust_cfa_offset 8
    popq (%rcx)
    .cfi_adjust_cfa_offset -8
    fxsave64 (%rbx)
    fninit
    addq $16, %rsp
    .cfi_adjust_cfa_offset -16
    popq %rbx
    .cfi_adjust_cfa_offset -8
    ret
    .cfi_endproc
    .popsection
)");

extern "C" {
[[gnu::visibility("hidden")]] extern const char moscope_x87_register_stubs[];
[[gnu::visibility("hidden")]] extern const char moscope_x87_memory_stubs[];
[[gnu::visibility("hidden")]] void moscope_x87_run(void *image, const void *stub, void *operand, std::uint64_t *flags);
}

namespace moscope::x86::x87 {

namespace {

struct alignas(16) HostImage {
    std::uint16_t control = 0, status = 0;
    std::uint8_t tags = 0, reserved = 0;
    std::uint16_t opcode = 0;
    std::uint64_t instruction = 0, operand = 0;
    std::uint32_t mxcsr = 0, mxcsr_mask = 0;
    struct {
        std::uint64_t significand, sign_exponent;
    } st[8];
    std::uint8_t rest[512 - 160];
};
static_assert(sizeof(HostImage) == 512);

constexpr unsigned kStub = 4;

} // namespace

void run_on_host(X87 &f, Code code, void *operand, std::uint64_t &flags) {
    HostImage image;
    image.control = f.control;
    image.status = f.status;
    image.tags = f.valid;
    image.mxcsr = _mm_getcsr();
    for (unsigned i = 0; i < 8; ++i) {
        const X87::Reg &r = f.st[(f.top() + i) & 7];
        image.st[i] = {r.significand, r.sign_exponent};
    }
    const char *stub = code.memory() ? moscope_x87_memory_stubs + kStub * (code.opcode * 8 + (code.modrm >> 3 & 7))
                                     : moscope_x87_register_stubs + kStub * (code.opcode * 64 + (code.modrm & 63));
    moscope_x87_run(&image, stub, operand, &flags);
    f.status = image.status;
    f.valid = image.tags;
    for (unsigned i = 0; i < 8; ++i)
        f.st[(f.top() + i) & 7] = {image.st[i].significand, static_cast<std::uint16_t>(image.st[i].sign_exponent)};
}

} // namespace moscope::x86::x87
