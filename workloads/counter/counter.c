// SPDX-License-Identifier: BSD-3-Clause
// counter [shared|percore|sloppy]: a reference count that every core takes and gives back all the time. An operation is
// one reference taken and one given back; each thread holds a few, so that the count at the end is known. `shared` is
// one word; `percore` a word for each core, whose sum no single load can read; `sloppy` the counter of the MOSBENCH paper
// (section 4.3): a core keeps references given back as spares of its own, and the invariant is
// central = in use + sum of the spares.
#include "../common/workload.h"

enum { kHeld = 4, kMostSpares = 8 };
typedef struct { _Alignas(kLine) int64_t value; } Counter;

Counter shared_counter;
Counter percore_counter[kMaxCores];
Counter central_counter;
Counter spares[kMaxCores];
static uint64_t done[kMaxCores][kLine / 8];

static Options options = {.name = "counter", .variants = {"shared", "percore", "sloppy"}};

#define SEPARATE __attribute__((noinline, noclone)) static

SEPARATE void shared_acquire(unsigned i) { (void)i; __atomic_fetch_add(&shared_counter.value, 1, __ATOMIC_SEQ_CST); }
SEPARATE void shared_release(unsigned i) { (void)i; __atomic_fetch_sub(&shared_counter.value, 1, __ATOMIC_SEQ_CST); }

SEPARATE void percore_acquire(unsigned i) { *(volatile int64_t *)&percore_counter[i].value += 1; }
SEPARATE void percore_release(unsigned i) { *(volatile int64_t *)&percore_counter[i].value -= 1; }

SEPARATE void sloppy_acquire(unsigned i) {
    volatile int64_t *mine = &spares[i].value;
    if (*mine > 0)
        *mine -= 1;
    else
        __atomic_fetch_add(&central_counter.value, 1, __ATOMIC_SEQ_CST);
}
SEPARATE void sloppy_release(unsigned i) {
    volatile int64_t *mine = &spares[i].value;
    *mine += 1;
    if (*mine > kMostSpares) {
        __atomic_fetch_sub(&central_counter.value, *mine, __ATOMIC_SEQ_CST);
        *mine = 0;
    }
}

typedef void (*Step)(unsigned);
static Step acquire, release;

static void work(unsigned i) {
    uint64_t n = 0;
    for (unsigned h = 0; h < kHeld; ++h)
        acquire(i);
    for (; goes_on(&options, n); ++n) {
        acquire(i);
        release(i);
        operation_done();
    }
    done[i][0] = n;
}

int main(int argc, char **argv) {
    options_read(&options, argc, argv, NULL, 0);
    const int form = options.variant[0] == 's' ? options.variant[1] == 'l' ? 2 : 0 : 1;
    acquire = (Step[]){shared_acquire, percore_acquire, sloppy_acquire}[form];
    release = (Step[]){shared_release, percore_release, sloppy_release}[form];
    // Pages are there when the region begins.
    for (unsigned i = 0; i < options.cores; ++i)
        *(volatile int64_t *)&percore_counter[i].value = *(volatile int64_t *)&spares[i].value = 0;
    run_threads(&options, work);
    int64_t total = 0, in_use = shared_counter.value + central_counter.value;
    for (unsigned i = 0; i < options.cores; ++i) {
        total += (int64_t)done[i][0];
        in_use += percore_counter[i].value - spares[i].value;
    }
    const int right = in_use == (int64_t)kHeld * options.cores;
    printf("moscope: counter operations=%lld in_use=%lld verify=%s\n", (long long)total, (long long)in_use, right ? "ok" : "wrong");
    return !right;
}
