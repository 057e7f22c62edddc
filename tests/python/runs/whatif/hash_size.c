// SPDX-License-Identifier: BSD-3-Clause
// Planted: a hash table whose buckets are independent counts its entries in one field, beside those that every access reads.
#include "planted.h"

enum { BUCKETS = 256 };

struct bucket {
    long entries;
} __attribute__((aligned(LINE)));

struct table {
    unsigned long mask;
    struct bucket *buckets;
#ifdef MENDED
    char apart[LINE - 16];
    struct {
        long size;
    } __attribute__((aligned(LINE))) of_thread[MOST];
#else
    long size;
#endif
} __attribute__((aligned(LINE)));

static struct bucket buckets[BUCKETS];
static struct table table = {.mask = BUCKETS - 1, .buckets = buckets};

#ifdef MENDED
#define SIZE(self) table.of_thread[self].size
#else
#define SIZE(self) (*((void)(self), &table.size))
#endif

static void insert(int self, unsigned long key) {
    struct bucket *bucket = &table.buckets[key & table.mask];
    bucket->entries++;
    __atomic_add_fetch(&SIZE(self), 1, __ATOMIC_RELAXED); // defect
}

static void work(int self) {
    for (unsigned long n = 0;; ++n) {
        insert(self, (unsigned long)self * 4 + (n & 3)); // buckets of its own
        compute(80);
        operation_done();
    }
}

int main(int argc, char **argv) { return run(argc, argv, work); }
