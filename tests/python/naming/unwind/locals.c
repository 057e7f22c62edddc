// SPDX-License-Identifier: BSD-3-Clause
// Prints its registers and its stack in the depth of a few calls, and where the variables of these calls are: lines of a word and values.
// `at NAME ADDRESS` is what a name of a byte should say; `main` is where the program was loaded.
#define _GNU_SOURCE
#include <alloca.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <ucontext.h>

enum { STACK = 4096, MOST = 64 };

struct worker_stats {
    long packets;
    int bytes[6];
};
struct large {
    long words[20];
};

static const int order[] = {REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP, REG_RSI, REG_RDI,
                            REG_R8,  REG_R9,  REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15};
static struct {
    const char *name;
    const void *at;
} noted[MOST];
static int count;

static void note(const char *name, const void *at) {
    noted[count].name = name;
    noted[count++].at = at;
    __asm__ volatile("" ::"r"(at) : "memory");
}

int main(int, char **);

__attribute__((noinline)) static int snapshot(int depth) {
    ucontext_t here;
    getcontext(&here);
    printf("registers %llx", (unsigned long long)here.uc_mcontext.gregs[REG_RIP]);
    for (unsigned n = 0; n < 16; ++n)
        printf(" %llx", (unsigned long long)here.uc_mcontext.gregs[order[n]]);
    printf("\nstack ");
    const unsigned char *stack = (const unsigned char *)here.uc_mcontext.gregs[REG_RSP];
    for (int n = 0; n < STACK; ++n)
        printf("%02x", stack[n]);
    printf("\nmain %lx\n", (unsigned long)main);
    for (int n = 0; n < count; ++n)
        printf("at %s %lx\n", noted[n].name, (unsigned long)noted[n].at);
    return depth;
}

static inline __attribute__((always_inline)) int inlined(int n) {
    volatile int inner[4] = {n};
    note("inlined()::inner[3]", (const void *)&inner[3]);
    return snapshot(n) + inner[1];
}

__attribute__((noinline)) static int by_value(struct large passed, int n) {
    note("by_value()::passed.words[2]", &passed.words[2]);
    return inlined(n) + (int)passed.words[n];
}

__attribute__((noinline)) static int blocks(int n) {
    struct large own = {{n}};
    volatile long outer = n;
    int sum = 0;
    note("blocks()::outer", (const void *)&outer);
    if (n > 2) {
        volatile long first[2] = {n, n};
        note("blocks()::first[1]", (const void *)&first[1]);
        sum += by_value(own, n) + (int)first[0];
    } else {
        volatile long second[2] = {n, n};
        sum += by_value(own, n + 1) + (int)second[0];
    }
    return sum + (int)outer;
}

__attribute__((noinline)) static int of_unknown_size(int n) {
    struct worker_stats some[n];
    char *allocated = alloca((size_t)n * 8);
    some[1].packets = allocated[1] = (char)n;
    note("of_unknown_size()::some[2].bytes[3]", &some[2].bytes[3]);
    note("frame of of_unknown_size()", allocated);
    return blocks(n) + (int)some[1].packets + allocated[1];
}

__attribute__((noinline)) static int run_workers(int n) {
    struct worker_stats stats[8] = {{n, {n}}};
    pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    note("run_workers()::stats[2].packets", &stats[2].packets);
    note("run_workers()::stats[7].bytes[5]", &stats[7].bytes[5]);
    note("run_workers()::lock", (char *)&lock + 12);
    const int sum = of_unknown_size(n);
    pthread_mutex_destroy(&lock);
    return sum + (int)stats[3].packets;
}

int main(int argc, char **argv) {
    volatile long done[2] = {argc, (long)argv};
    note("main()::done[1]", (const void *)&done[1]);
    return run_workers(argc + 3) + (int)done[0] < 0;
}
