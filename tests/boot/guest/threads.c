// SPDX-License-Identifier: BSD-3-Clause
// Threads of one process that map, unmap and protect its pages under storm, one per core: what is unmapped is gone for all of
// them at once, and no thread writes to a page that another has made read-only. Says "threads right" if so, and a line per fault
// if not.
#define _GNU_SOURCE
#include <immintrin.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

enum { MOST = 64, ROUNDS = 60, LOOKS = 20, LINE = 64 };

// A thread's page. `round` is the last one whose number the owner has written to a fresh page.
static struct {
    _Alignas(LINE) atomic_uint round;
    volatile unsigned* page;
} of[MOST];

// A page that all threads but the first count on, each in its own word. The first makes it read-only, and compares.
static volatile unsigned* counted;
static atomic_uint ended, faults;
static unsigned threads;
static long size;
static __thread sigjmp_buf refused;

static void fault(const char* what, unsigned thread, unsigned found, unsigned right) {
    printf("threads fault: %s of thread %u: %u, not %u\n", what, thread, found, right);
    fflush(stdout);
    atomic_fetch_add(&faults, 1);
}

static volatile unsigned* map(volatile void* at, int fixed) {
    void* got = mmap((void*)at, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | fixed, -1, 0);
    if (got == MAP_FAILED) perror("mmap"), exit(1);
    return got;
}

/// A page of another thread holds the number of a round that is not older than the last one, or nothing yet of the next.
static void look(unsigned thread) {
    const unsigned least = atomic_load(&of[thread].round), found = *of[thread].page;
    if (found && found < least) fault("an old page", thread, found, least);
}

/// Another page in place of this thread's: by a new mapping, or by the kernel, which drops the old one.
static void renew(unsigned thread, unsigned round) {
    if (round % 2)
        map(of[thread].page, MAP_FIXED);
    else if (madvise((void*)of[thread].page, size, MADV_DONTNEED))
        perror("madvise"), exit(1);
    if (*of[thread].page) fault("a page that is not new", thread, *of[thread].page, 0);
    *of[thread].page = round;
    atomic_store(&of[thread].round, round);
}

static void on_refusal(int signal) {
    (void)signal;
    siglongjmp(refused, 1);
}

/// Adds to this thread's word of the counted page, if it may.
static void count(unsigned thread) {
    if (!sigsetjmp(refused, 1)) counted[thread]++;
}

static void freeze(void) {
    unsigned before[MOST];
    if (mprotect((void*)counted, size, PROT_READ)) perror("mprotect"), exit(1);
    for (unsigned t = 1; t < threads; t++) before[t] = counted[t];
    for (int i = 0; i < 200; i++) _mm_pause();
    for (unsigned t = 1; t < threads; t++)
        if (counted[t] != before[t]) fault("a write to a read-only page", t, counted[t], before[t]);
    if (mprotect((void*)counted, size, PROT_READ | PROT_WRITE)) perror("mprotect"), exit(1);
}

static void* work(void* given) {
    const unsigned self = (unsigned)(size_t)given;
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(self, &one);
    sched_setaffinity(0, sizeof one, &one);
    for (unsigned round = 1; round <= ROUNDS; round++) {
        renew(self, round);
        if (!self) freeze();
        // A thread's own change makes its core forget all translations, so it looks at each page more than once before the next.
        // PAUSE lets the other cores run in an emulator that runs one after the other.
        for (unsigned i = 0; i < LOOKS; i++, _mm_pause())
            for (unsigned t = 0; t < threads; t++) {
                look(t);
                if (self) count(self);
            }
    }
    // The others go on with their rounds: a thread that has ended them keeps its translations, and looks.
    for (atomic_fetch_add(&ended, 1); atomic_load(&ended) < threads; _mm_pause())
        for (unsigned t = 0; t < threads; t++) look(t);
    return NULL;
}

int main(void) {
    const long cores = sysconf(_SC_NPROCESSORS_ONLN);
    threads = cores < 2 ? 2 : cores > MOST ? MOST : (unsigned)cores;
    size = sysconf(_SC_PAGESIZE);
    signal(SIGSEGV, on_refusal);
    counted = map(NULL, 0);
    for (unsigned t = 0; t < threads; t++) of[t].page = map(NULL, 0);
    pthread_t others[MOST];
    for (unsigned t = 1; t < threads; t++)
        if (pthread_create(&others[t], NULL, work, (void*)(size_t)t)) perror("pthread_create"), exit(1);
    work(NULL);
    for (unsigned t = 1; t < threads; t++) pthread_join(others[t], NULL);
    printf(atomic_load(&faults) ? "threads wrong\n" : "threads right\n");
    return !!atomic_load(&faults);
}
