// SPDX-License-Identifier: BSD-3-Clause
// A server's counters with a planted defect: the counters of all workers are packed into one array, so that workers share lines.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

enum { MOST_WORKERS = 48 };

struct worker_stats {
    long packets;
    long bytes;
};

static struct worker_stats stats[MOST_WORKERS] __attribute__((aligned(64)));

static inline void count(struct worker_stats *of, long size) {
    of->packets++;
    of->bytes += size;
}

static void *work(void *number) {
    struct worker_stats *own = &stats[(long)number];
    for (long packet = 0;; ++packet) {
        count(own, packet & 1023);
        __asm__ volatile("" ::: "memory");
    }
    return NULL;
}

int main(int argc, char **argv) {
    const int workers = argc > 1 ? atoi(argv[1]) : 4;
    pthread_t thread;
    for (long n = 1; n < workers; ++n)
        if (pthread_create(&thread, NULL, work, (void *)n))
            return 1;
    puts("the workers run");
    fflush(stdout);
    work(NULL);
}
