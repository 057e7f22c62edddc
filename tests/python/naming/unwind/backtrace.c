// SPDX-License-Identifier: BSD-3-Clause
// Prints what an unwinder gets of a nest of functions, and the return addresses that the C library finds: words of 64 bits. First rip,
// then the sixteen registers of StackSample, then a count of bytes and the stack, then a count and the addresses.
#define _GNU_SOURCE
#include <execinfo.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <ucontext.h>

enum { STACK = 4096, MOST = 64 };

static const int order[] = {REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP, REG_RSI, REG_RDI,
                            REG_R8,  REG_R9,  REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15};

static void word(uint64_t value) { fwrite(&value, sizeof value, 1, stdout); }

__attribute__((noinline)) static int innermost(int depth) {
    ucontext_t here;
    void *found[MOST];
    getcontext(&here);
    word((uint64_t)here.uc_mcontext.gregs[REG_RIP]);
    for (unsigned n = 0; n < 16; ++n)
        word((uint64_t)here.uc_mcontext.gregs[order[n]]);
    word(STACK);
    fwrite((void *)here.uc_mcontext.gregs[REG_RSP], STACK, 1, stdout);
    const int count = backtrace(found, MOST);
    word((uint64_t)count);
    for (int n = 0; n < count; ++n)
        word((uint64_t)found[n]);
    return depth + count;
}

__attribute__((noinline)) static int with_array(int size) {
    volatile char room[size]; // of a size that only the running program knows: its frame is found through rbp
    memset((char *)room, size, (size_t)size);
    return innermost(room[size / 2]) + room[0];
}

__attribute__((noinline)) static int with_kept_registers(int a, int b, int c, int d) {
    const int x = with_array(a + 10), y = b * x, z = c + y;
    __asm__ volatile("" ::: "rbx", "r12", "r13", "r14", "r15", "memory");
    return x + y + z + d;
}

__attribute__((noinline)) static int recursive(int n) { return n ? recursive(n - 1) + 1 : with_kept_registers(30, n, 3, 4) + 1; }

int main(void) { return recursive(5) == 12345; }
