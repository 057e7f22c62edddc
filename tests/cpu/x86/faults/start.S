// SPDX-License-Identifier: BSD-3-Clause
// A flat Multiboot kernel: to 64-bit mode with an identity map of 1 GiB, then main; and the ways into and out of a case.
        .set    KCODE, 0x08
        .set    KDATA, 0x10
        .code32
        .section .text.start, "ax"
        .globl  start
start:  jmp     1f
        .balign 4
header: .long   0x1badb002, 0x10000, -(0x1badb002 + 0x10000)
        .long   header, start, load_end, bss_end, start
1:      cli
        movl    $stack_top, %esp
        movl    $pdpt + 3, pml4
        movl    $0x83, pdpt
        movl    $pml4, %eax
        movl    %eax, %cr3
        movl    $0x6b0, %eax            // PAE, PSE, PGE, OSFXSR, OSXMMEXCPT
        movl    %eax, %cr4
        movl    $0xc0000080, %ecx
        movl    $0x901, %eax            // NXE, LME, SCE
        xorl    %edx, %edx
        wrmsr
        movl    $0x80010033, %eax
        movl    %eax, %cr0
        lgdt    boot_gdtr
        ljmp    $KCODE, $2f
        .code64
2:      movl    $KDATA, %eax
        movl    %eax, %ds
        movl    %eax, %es
        movl    %eax, %ss
        xorl    %eax, %eax
        movl    %eax, %fs
        movl    %eax, %gs
        call    main
        movb    $0xfe, %al              // reset
        outb    %al, $0x64
3:      hlt
        jmp     3b

        .balign 8
boot_gdt: .quad 0, 0x00af9b000000ffff, 0x00cf93000000ffff
boot_gdtr: .word 23
        .quad   boot_gdt

// Each vector's entry: its number in 16 bytes, the error code made up where there is none.
        .balign 16
        .globl  vectors
vectors:
        .set    v, 0
        .rept   256
        .balign 16
        .if !((v == 8) || ((v >= 10) && (v <= 14)) || (v == 17))
        pushq   $0x5a5a
        .endif
        pushq   $v
        jmp     taken
        .set    v, v + 1
        .endr

// A case ends: what was pushed goes to `seen`, and control to where run_case was called.
taken:  popq    seen                    // vector
        popq    seen + 8                // error code
        popq    seen + 16               // rip
        popq    seen + 24               // cs
        popq    seen + 32               // rflags
        popq    seen + 40               // rsp
        popq    seen + 48               // ss
        movq    saved_rsp, %rsp
        movl    $KDATA, %eax
        movl    %eax, %ds
        movl    %eax, %es
        movl    %eax, %ss
        movq    %cr2, %rax
        movq    %rax, seen + 56
        movq    %dr6, %rax
        movq    %rax, seen + 64
        cld
        popq    %r15
        popq    %r14
        popq    %r13
        popq    %r12
        popq    %rbx
        popq    %rbp
        ret

// void run_case(struct frame *f): IRETQ with this frame, registers from `given`.
        .globl  run_case
run_case:
        pushq   %rbp
        pushq   %rbx
        pushq   %r12
        pushq   %r13
        pushq   %r14
        pushq   %r15
        movq    %rsp, saved_rsp
        pushq   32(%rdi)
        pushq   24(%rdi)
        pushq   16(%rdi)
        pushq   8(%rdi)
        pushq   (%rdi)
        movq    given, %rax
        movq    given + 8, %rcx
        movq    given + 16, %rdx
        movq    given + 24, %rbx
        movq    given + 32, %rdi
        iretq

        .section .note.GNU-stack, "", @progbits
        .bss
        .balign 4096
        .globl  pml4, pdpt
pml4:   .skip   4096
pdpt:   .skip   4096
        .skip   16384
stack_top:
saved_rsp: .skip 8
