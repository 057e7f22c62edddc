// SPDX-License-Identifier: BSD-3-Clause
// Planted: a contended mutex lies beside the data that it protects, so that waiters take the line from its holder.
#include "planted.h"

struct account {
    int lock;
#ifdef MENDED
    char apart[LINE - sizeof(int)];
#endif
    long balance;
    long changes;
} __attribute__((aligned(LINE)));

static struct account account;

static void take(int *lock) {
    while (__atomic_exchange_n(lock, 1, __ATOMIC_ACQUIRE)) // waits
        __asm__ volatile("pause");
}

static void work(int self) {
    for (;;) {
        take(&account.lock);
        for (int n = 0; n < 8; ++n) {
            account.balance += self + n; // defect
            account.changes++;
            compute(20);
        }
        __atomic_store_n(&account.lock, 0, __ATOMIC_RELEASE);
        operation_done();
        compute(100);
    }
}

int main(int argc, char **argv) { return run(argc, argv, work); }
