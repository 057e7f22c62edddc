// SPDX-License-Identifier: BSD-3-Clause
// Litmus tests for x86-TSO in user space: litmus [ROUNDS]. Each test runs its threads, pinned to cores of their own,
// over arrays of independent locations, so that they meet at all offsets, and counts outcomes. Exits with 1 if one
// that the manual forbids (AMD 24593, section 7.2) was seen. SB may show its relaxed outcome; the count is printed.
// In every other round each thread has all locations in its caches at the start: its loads are quick then, and what
// it stores has to take lines from the others. Without that, where x and y have one home, a thread's store is ordered
// there before its load, being asked for first, and SB shows only where a store waits behind others.
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { kThreads = 4, kCells = 1024, kLine = 64 };

// One location per line; x and y of an index are on different lines.
typedef struct { _Alignas(kLine) volatile int64_t v; } Cell;
static Cell x[kCells], y[kCells];
static int64_t r[kThreads][2][kCells];

#define STORE(c) __asm__ volatile("movq $1, %0" : "=m"((c).v) : : "memory")
#define LOAD(to, c) __asm__ volatile("movq %1, %0" : "=r"(to) : "m"((c).v) : "memory")
#define FENCE() __asm__ volatile("mfence" : : : "memory")
#define EXCHANGE(c)                                                                                                    \
    do {                                                                                                               \
        int64_t one = 1;                                                                                               \
        __asm__ volatile("xchgq %0, %1" : "+r"(one), "+m"((c).v) : : "memory");                                        \
    } while (0)

static void store_x(int i, int t) { (void)t; STORE(x[i]); }
static void store_y(int i, int t) { (void)t; STORE(y[i]); }
static void mp_write(int i, int t) { (void)t; STORE(x[i]); STORE(y[i]); }
static void read_yx(int i, int t) { int64_t a, b; LOAD(a, y[i]); LOAD(b, x[i]); r[t][0][i] = a; r[t][1][i] = b; }
static void read_xy(int i, int t) { int64_t a, b; LOAD(a, x[i]); LOAD(b, y[i]); r[t][0][i] = a; r[t][1][i] = b; }
static void sb_0(int i, int t) { int64_t a; STORE(x[i]); LOAD(a, y[i]); r[t][0][i] = a; }
static void sb_1(int i, int t) { int64_t a; STORE(y[i]); LOAD(a, x[i]); r[t][0][i] = a; }
static void sb_fence_0(int i, int t) { int64_t a; STORE(x[i]); FENCE(); LOAD(a, y[i]); r[t][0][i] = a; }
static void sb_fence_1(int i, int t) { int64_t a; STORE(y[i]); FENCE(); LOAD(a, x[i]); r[t][0][i] = a; }
static void sb_lock_0(int i, int t) { int64_t a; EXCHANGE(x[i]); LOAD(a, y[i]); r[t][0][i] = a; }
static void sb_lock_1(int i, int t) { int64_t a; EXCHANGE(y[i]); LOAD(a, x[i]); r[t][0][i] = a; }
static void lb_0(int i, int t) { int64_t a; LOAD(a, x[i]); STORE(y[i]); r[t][0][i] = a; }
static void lb_1(int i, int t) { int64_t a; LOAD(a, y[i]); STORE(x[i]); r[t][0][i] = a; }
static void corr(int i, int t) { int64_t a, b; LOAD(a, x[i]); LOAD(b, x[i]); r[t][0][i] = a; r[t][1][i] = b; }

static int mp_bad(int i) { return r[1][0][i] == 1 && r[1][1][i] == 0; }
static int sb_both(int i) { return r[0][0][i] == 0 && r[1][0][i] == 0; }
static int lb_bad(int i) { return r[0][0][i] == 1 && r[1][0][i] == 1; }
static int iriw_bad(int i) { return r[2][0][i] == 1 && r[2][1][i] == 0 && r[3][0][i] == 1 && r[3][1][i] == 0; }
static int corr_bad(int i) { return r[1][0][i] == 1 && r[1][1][i] == 0; }

typedef void (*Step)(int i, int t);
static const struct Test {
    const char *name;
    int threads;
    Step step[kThreads];
    int (*outcome)(int i);
    int forbidden;
} tests[] = {
    {"MP", 2, {mp_write, read_yx}, mp_bad, 1},
    {"SB", 2, {sb_0, sb_1}, sb_both, 0},
    {"SB+mfence", 2, {sb_fence_0, sb_fence_1}, sb_both, 1},
    {"SB+locked", 2, {sb_lock_0, sb_lock_1}, sb_both, 1},
    {"LB", 2, {lb_0, lb_1}, lb_bad, 1},
    {"CoRR", 2, {store_x, corr}, corr_bad, 1},
    {"IRIW", 4, {store_x, store_y, read_xy, read_yx}, iriw_bad, 1},
};

static const struct Test *running;
static int rounds = 100, cores;

// Threads that meet have to leave together, within less than a test's length, so they spin; where there are fewer
// cores than threads they give the core away after a while. News of the last one's arrival takes longer to some than
// to others, so they leave at a time that it has set.
enum { kNews = 4000 }; // cycles
static atomic_uint arrived, generation;
static atomic_ullong leaving;
static unsigned members;

static void meet(void) {
    const unsigned mine = atomic_load(&generation);
    if (atomic_fetch_add(&arrived, 1) + 1 == members) {
        atomic_store(&arrived, 0);
        atomic_store(&leaving, __builtin_ia32_rdtsc() + kNews);
        atomic_fetch_add(&generation, 1);
    }
    for (unsigned spins = 0; atomic_load(&generation) == mine; ++spins) {
        __asm__ volatile("pause");
        if (spins % 1024 == 1023)
            sched_yield();
    }
    // A difference beyond kNews: counters that do not go together.
    for (unsigned long long at = atomic_load(&leaving); at - __builtin_ia32_rdtsc() <= kNews;) {
    }
}

static void pin(int thread) {
    cpu_set_t set;
    CPU_ZERO(&set);
    // Spread over the cores, so that threads of one test sit on different chips where there are several.
    CPU_SET((size_t)(thread * (cores / kThreads ? cores / kThreads : 1) % cores), &set);
    sched_setaffinity(0, sizeof set, &set);
}

static int warm(int round) { return round % 2; }

static void *litmus_thread(void *argument) {
    const int t = (int)(intptr_t)argument;
    uint32_t random = (uint32_t)t * 2654435761u + 1;
    pin(t);
    for (int round = 0; round < rounds; ++round) {
        meet();
        if (warm(round)) {
            for (int i = 0; i < kCells; ++i)
                (void)(x[i].v + y[i].v);
            meet();
        }
        random = random * 1664525u + 1013904223u;
        for (uint32_t wait = (random >> 16) % 64; wait; --wait)
            __asm__ volatile("" : : : "memory");
        for (int i = 0; i < kCells; ++i)
            running->step[t](i, t);
        meet();
        meet(); // the main thread counts and clears in between
    }
    return NULL;
}

static long run(const struct Test *test) {
    pthread_t threads[kThreads];
    long seen = 0;
    running = test;
    members = (unsigned)test->threads + 1;
    for (intptr_t t = 0; t < test->threads; ++t)
        pthread_create(&threads[t], NULL, litmus_thread, (void *)t);
    for (int round = 0; round < rounds; ++round) {
        memset(x, 0, sizeof x);
        memset(y, 0, sizeof y);
        memset(r, 0, sizeof r);
        if (warm(round))
            meet();
        meet();
        meet();
        for (int i = 0; i < kCells; ++i)
            seen += test->outcome(i);
        meet();
    }
    for (int t = 0; t < test->threads; ++t)
        pthread_join(threads[t], NULL);
    return seen;
}

// --- locked operations: nothing is lost, nothing is torn ---

static _Alignas(kLine) char shared[2 * kLine];
static int64_t *const straddling = (int64_t *)(shared + kLine - 4); // an operand on two lines
static _Alignas(4096) char pages[2 * 4096];
static int64_t *const across = (int64_t *)(pages + 4096 - 4); // on two pages
static union {
    _Alignas(16) __int128 whole;
    volatile uint64_t half[2];
} pair;
static atomic_long counter, compared, torn;

static int compare_exchange_16(uint64_t expect_low, uint64_t expect_high, uint64_t low, uint64_t high) {
    unsigned char done;
    __asm__ volatile("lock cmpxchg16b %1\n\tsete %0"
                     : "=q"(done), "+m"(pair.whole), "+a"(expect_low), "+d"(expect_high)
                     : "b"(low), "c"(high) : "memory", "cc");
    return done;
}

static void *locked_thread(void *argument) {
    pin((int)(intptr_t)argument);
    meet();
    for (int n = 0; n < rounds * 32; ++n) {
        __asm__ volatile("lock incq %0" : "+m"(counter) : : "memory", "cc");
        __asm__ volatile("lock addq $1, %0" : "+m"(*straddling) : : "memory", "cc");
        __asm__ volatile("lock addq $1, %0" : "+m"(*across) : : "memory", "cc");
        long old = atomic_load_explicit(&compared, memory_order_relaxed);
        while (!atomic_compare_exchange_weak(&compared, &old, old + 1)) {
        }
        for (;;) {
            const uint64_t low = pair.half[0], high = pair.half[1];
            if (compare_exchange_16(low, high, low + 1, ~(low + 1))) {
                if (high != ~low) // the exchange proves that both halves were there at once
                    atomic_fetch_add(&torn, 1);
                break;
            }
        }
    }
    return NULL;
}

static int locked(void) {
    pthread_t threads[kThreads];
    pair.half[0] = 0;
    pair.half[1] = ~UINT64_C(0);
    members = kThreads;
    for (intptr_t t = 0; t < kThreads; ++t)
        pthread_create(&threads[t], NULL, locked_thread, (void *)t);
    for (int t = 0; t < kThreads; ++t)
        pthread_join(threads[t], NULL);
    const long all = (long)kThreads * rounds * 32;
    const int right = counter == all && *straddling == all && *across == all && compared == all &&
                      (long)pair.half[0] == all && torn == 0;
    printf("locked: %ld of each: %s\n", all, right ? "right" : "WRONG");
    return right;
}

int main(int argc, char **argv) {
    int ok = 1;
    if (argc > 1)
        rounds = atoi(argv[1]);
    cores = (int)sysconf(_SC_NPROCESSORS_ONLN);
    for (size_t n = 0; n < sizeof tests / sizeof *tests; ++n) {
        const long seen = run(&tests[n]);
        const int bad = tests[n].forbidden && seen;
        printf("%s: %ld of %ld%s\n", tests[n].name, seen, (long)rounds * kCells,
               bad ? " FORBIDDEN" : tests[n].forbidden ? "" : " (allowed)");
        fflush(stdout);
        ok &= !bad;
    }
    ok &= locked();
    printf("litmus: %s\n", ok ? "right" : "WRONG");
    return !ok;
}
