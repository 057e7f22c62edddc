// SPDX-License-Identifier: BSD-3-Clause
// Planted: one mutex protects the accounts of all threads, though each thread changes only its own.
#include "planted.h"

struct bank {
    int lock;
    long changes;
} __attribute__((aligned(2 * LINE)));

#ifdef MENDED
static struct bank bank_of[MOST];
#define BANK(self) bank_of[self]
#else
static struct bank bank;
#define BANK(self) (*((void)(self), &bank))
#endif

static long balance[MOST][LINE / sizeof(long)] __attribute__((aligned(LINE)));

static void work(int self) {
    for (;;) {
        while (__atomic_exchange_n(&BANK(self).lock, 1, __ATOMIC_ACQUIRE)) // defect
            __asm__ volatile("pause");
        balance[self][0]++;
        BANK(self).changes++;
        __atomic_store_n(&BANK(self).lock, 0, __ATOMIC_RELEASE);
        operation_done();
        compute(300);
    }
}

int main(int argc, char **argv) { return run(argc, argv, work); }
