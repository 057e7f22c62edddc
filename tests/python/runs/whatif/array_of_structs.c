// SPDX-License-Identifier: BSD-3-Clause
// Planted: the workers' counters lie packed in an array of structures.
#include "planted.h"

struct worker_stats {
    long packets;
    long bytes;
#ifdef MENDED
} __attribute__((aligned(LINE)));
#else
};
#endif

static struct worker_stats stats[MOST] __attribute__((aligned(LINE)));

static void work(int self) {
    for (long packet = 0;; ++packet) {
        stats[self].packets++; // defect
        stats[self].bytes += packet & 1023;
        compute(50);
        operation_done();
    }
}

int main(int argc, char **argv) { return run(argc, argv, work); }
