// SPDX-License-Identifier: BSD-3-Clause
// Planted: all threads take and drop references of one object whose count is a single word.
#include "planted.h"

struct object {
    long references;
    long size;
    long kind;
} __attribute__((aligned(LINE)));

static struct object shared = {1, 64, 2};

#ifdef MENDED
static struct {
    long references;
} __attribute__((aligned(LINE))) own[MOST];
#define REFERENCES(self) own[self].references
#else
#define REFERENCES(self) (*((void)(self), &shared.references))
#endif

static void work(int self) {
    volatile long sum = 0;
    for (;;) {
        __atomic_add_fetch(&REFERENCES(self), 1, __ATOMIC_SEQ_CST); // defect
        sum = sum + __atomic_load_n(&shared.size, __ATOMIC_RELAXED);
        compute(50);
        __atomic_sub_fetch(&REFERENCES(self), 1, __ATOMIC_SEQ_CST);
        compute(50);
        operation_done();
    }
}

int main(int argc, char **argv) { return run(argc, argv, work); }
