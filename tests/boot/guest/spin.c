/* SPDX-License-Identifier: BSD-3-Clause */
/* One thread per processor: each waits in a PAUSE loop for its turn, counts, works a little and passes the turn on. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

static _Alignas(64) atomic_ulong turn;
static _Alignas(64) unsigned long counted;
static long threads;

static void *run(void *number) {
    for (unsigned long i = (unsigned long)number;; i += (unsigned long)threads) {
        while (atomic_load_explicit(&turn, memory_order_acquire) != i)
            __builtin_ia32_pause();
        counted++;
        for (volatile int k = 0; k < 50; k++)
            ;
        if (i == 4 * (unsigned long)threads) {
            printf("moscope: spinning\n");
            fflush(stdout);
        }
        atomic_store_explicit(&turn, i + 1, memory_order_release);
    }
    return number;
}

int main(void) {
    threads = sysconf(_SC_NPROCESSORS_ONLN);
    pthread_t last;
    for (long i = 0; i < threads; i++)
        pthread_create(&last, 0, run, (void *)i);
    pthread_join(last, 0);
}
