// SPDX-License-Identifier: BSD-3-Clause
// What the programs with a planted defect share: pinned threads, and gem5's pseudo-instructions. MENDED removes the defect.
#pragma once

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdlib.h>

enum { LINE = 64, MOST = 48 };

static inline void m5_work_begin(uint64_t item) {
    __asm__ volatile(".byte 0x0f, 0x04, 0x5a, 0x00" : "+D"(item) : "S"(0L) : "rax", "rdx", "rcx", "r8", "r9", "r10", "r11", "memory");
}
static inline void operation_done(void) {
    uint64_t item = 1;
    __asm__ volatile(".byte 0x0f, 0x04, 0x5b, 0x00" : "+D"(item) : "S"(0L) : "rax", "rdx", "rcx", "r8", "r9", "r10", "r11", "memory");
}

/// Some work of one thread that no other sees: so many dependent steps.
static inline void compute(unsigned steps) {
    for (unsigned n = 0; n < steps; ++n)
        __asm__ volatile("" ::: "memory");
}

static int threads_;
static int ready_ __attribute__((aligned(LINE)));
static void (*work_)(int);

static void pin(int core) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(core, &set);
    sched_setaffinity(0, sizeof set, &set);
}

static void *thread_(void *number) {
    const int self = (int)(long)number;
    pin(self);
    __atomic_add_fetch(&ready_, 1, __ATOMIC_SEQ_CST);
    while (__atomic_load_n(&ready_, __ATOMIC_SEQ_CST) < threads_)
        sched_yield();
    if (self == 0)
        m5_work_begin(0);
    work_(self);
    return 0;
}

/// Runs work(0) to work(n - 1) for ever, each on its core; n is the program's argument.
static inline int run(int argc, char **argv, void (*work)(int)) {
    pthread_t thread;
    threads_ = argc > 1 ? atoi(argv[1]) : 4;
    work_ = work;
    for (long n = 1; n < threads_; ++n)
        if (pthread_create(&thread, 0, thread_, (void *)n))
            return 1;
    thread_((void *)0);
    return 0;
}
