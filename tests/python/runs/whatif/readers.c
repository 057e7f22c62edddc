// SPDX-License-Identifier: BSD-3-Clause
// Planted: readers of a table that is hardly ever written take a lock, whose count of readers all of them write.
#include "planted.h"

#ifdef MENDED
static struct {
    pthread_rwlock_t lock;
} __attribute__((aligned(2 * LINE))) of_reader[MOST];
#define LOCK(self) of_reader[self].lock
#else
static pthread_rwlock_t table_lock __attribute__((aligned(LINE)));
#define LOCK(self) (*((void)(self), &table_lock))
#endif

static long table[1024] __attribute__((aligned(LINE)));

static void work(int self) {
    volatile long sum = 0;
    for (unsigned n = 0;; ++n) {
        pthread_rwlock_rdlock(&LOCK(self)); // defect
        sum = sum + table[n & 1023];
        compute(20);
        pthread_rwlock_unlock(&LOCK(self));
        compute(100);
        operation_done();
    }
}

int main(int argc, char **argv) { return run(argc, argv, work); }
