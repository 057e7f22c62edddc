// SPDX-License-Identifier: BSD-3-Clause
// Planted: head and tail of a work queue share a line, so that the producer and the consumer of each pair take it from each other.
#include "planted.h"

enum { ENTRIES = 256 };

struct queue {
    unsigned long head;
#ifdef MENDED
    char apart[LINE - 8];
#endif
    unsigned long tail;
    long entry[ENTRIES] __attribute__((aligned(LINE)));
} __attribute__((aligned(LINE)));

static struct queue queue;

static void produce(void) {
    unsigned long tail = 0, seen = 0;
    for (;;) {
        while (tail - seen >= ENTRIES - 1)
            seen = __atomic_load_n(&queue.head, __ATOMIC_ACQUIRE);
        queue.entry[tail % ENTRIES] = (long)tail;
        __atomic_store_n(&queue.tail, ++tail, __ATOMIC_RELEASE); // defect
        compute(60);
    }
}

static void consume(void) {
    volatile long sum = 0;
    unsigned long head = 0, seen = 0;
    for (;;) {
        while (head == seen)
            seen = __atomic_load_n(&queue.tail, __ATOMIC_ACQUIRE);
        sum = sum + queue.entry[head % ENTRIES];
        __atomic_store_n(&queue.head, ++head, __ATOMIC_RELEASE);
        compute(60);
        operation_done();
    }
}

static void work(int self) {
    if (self % 2)
        consume();
    else
        produce();
}

int main(int argc, char **argv) {
    (void)argc;
    char *two[] = {argv[0], (char *)"2", 0};
    return run(2, two, work);
}
