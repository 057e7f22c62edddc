// SPDX-License-Identifier: BSD-3-Clause
// Lines of stacks that threads share: of a forked child's main thread, and of a thread that waits for others. The parent writes lines
// that it holds clean and alone.
#include <emmintrin.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

struct worker_stats {
    _Atomic long packets, bytes;
};
struct queue {
    _Atomic long head, tail;
};
static atomic_int started;
enum { LINES = 1 << 17, BLOCK = 64 }; // more than the caches hold

static void *work(void *own) {
    struct worker_stats *stats = own;
    for (started++;; stats->packets++)
        __asm__ volatile("" ::: "memory");
    return NULL;
}

static void *push(void *counter) {
    for (started++;;)
        atomic_fetch_add((_Atomic long *)counter, 1);
    return NULL;
}

static void *manage(void *unused) {
    struct queue queue = {0};
    pthread_t pusher, popper;
    pthread_create(&pusher, NULL, push, &queue.head);
    pthread_create(&popper, NULL, push, &queue.tail);
    pthread_join(pusher, unused);
    return (void *)queue.head;
}

static int serve(void) {
    struct worker_stats stats[4] __attribute__((aligned(64))) = {{0}};
    pthread_t threads[3];
    pthread_create(&threads[0], NULL, work, &stats[1]);
    pthread_create(&threads[1], NULL, work, &stats[2]);
    pthread_create(&threads[2], NULL, manage, NULL);
    while (started < 4)
        ;
    puts("all run");
    fflush(stdout);
    for (int n = 0; n < 3; ++n)
        pthread_join(threads[n], NULL);
    return (int)stats[0].packets;
}

int main(void) {
    volatile long(*lines)[8] = mmap(NULL, LINES * sizeof *lines, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (lines == MAP_FAILED)
        return 1;
    for (int n = 0; n < LINES; n += BLOCK)
        lines[n][0] = 1;
    if (!fork())
        return serve();
    long sum = 0;
    for (int first = 0;; first = (first + BLOCK) % LINES) {
        for (int n = first; n < first + BLOCK; ++n)
            sum += lines[n][0];
        _mm_mfence();
        for (int n = first; n < first + BLOCK; ++n)
            lines[n][1] = sum; // from E to M
    }
}
