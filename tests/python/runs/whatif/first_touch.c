// SPDX-License-Identifier: BSD-3-Clause
// Planted: the first thread fills a large table, so that all of its pages are on that thread's node; the other chip's threads read it.
#include "planted.h"

#include <sys/mman.h>
#include <unistd.h>

enum { WORDS = 4 << 20, PER_LINE = LINE / sizeof(long) }; // 32 MiB, beyond all caches

static long *table;

static void fill(void) {
    for (long n = 0; n < WORDS; ++n)
        table[n] = n;
}

static void work(int self) {
    volatile long sum = 0;
    if (self < 6)
        for (;;)
            pause();
    uint64_t at = (uint64_t)self << 32 | 1;
    for (;;) {
        at = at * 6364136223846793005u + 1442695040888963407u;
        sum = sum + table[(at >> 33) % (WORDS / PER_LINE) * PER_LINE]; // defect
        operation_done();
    }
}

int main(int argc, char **argv) {
    table = mmap(0, WORDS * sizeof(long), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
#ifdef MENDED
    pin(6); // a core of the chip that reads
#else
    pin(0);
#endif
    fill();
    return run(argc, argv, work);
}
