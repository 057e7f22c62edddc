// SPDX-License-Identifier: BSD-3-Clause
// Planted: head and tail of a work queue share a line. Producer and consumer keep apart by half of the queue and look at each other's
// end seldom, but each locked addition of the one takes the line from the other.
#include "planted.h"

enum { ENTRIES = 256, AHEAD = ENTRIES / 2 };

struct queue {
    unsigned long head;
#ifdef MENDED
    char apart[LINE - 8];
#endif
    unsigned long tail;
} __attribute__((aligned(LINE)));

static struct queue queue;

static void produce(void) {
    unsigned long tail = 0, seen = 0;
    for (;;) {
        for (; tail - seen >= ENTRIES; compute(2000))
            seen = __atomic_load_n(&queue.head, __ATOMIC_ACQUIRE);
        for (int n = 0; n < 4; ++n) {
            tail = __atomic_add_fetch(&queue.tail, 1, __ATOMIC_RELEASE); // defect
            compute(30);
        }
    }
}

static void consume(void) {
    unsigned long head = 0, seen = 0;
    for (;;) {
        for (; seen - head < AHEAD; compute(2000))
            seen = __atomic_load_n(&queue.tail, __ATOMIC_ACQUIRE);
        for (int n = 0; n < AHEAD; ++n) {
            head = __atomic_add_fetch(&queue.head, 1, __ATOMIC_RELEASE);
            compute(30);
            operation_done();
        }
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
