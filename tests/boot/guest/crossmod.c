// SPDX-License-Identifier: BSD-3-Clause
// Cross-modifying code in user space: crossmod [ROUNDS]. A thread writes the operand of an instruction and then says which value it
// is; the others, pinned to cores of their own, see that, serialize (AMD 24593, section 7.6.1) and run the instruction, which must
// give that value or a later one. The writer runs it as well, without serializing. Exits with 1 if somebody ran old code.
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { kReaders = 3, kPage = 4096, kOperand = 4 };

static uint8_t *code; // mov eax, VALUE ; ret, the operand at an address that a store writes in one piece
static _Alignas(64) atomic_uint written;
static _Alignas(64) atomic_uint seen[kReaders][16];
static atomic_uint stale, ran, there;
static unsigned rounds = 2000, cores;

static unsigned run(void) { return ((unsigned (*)(void))(code + kOperand - 1))(); }

static void pin(unsigned core) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(core % cores, &set);
    sched_setaffinity(0, sizeof set, &set);
}

static void serialize(void) {
    unsigned a = 0, b, c = 0, d;
    __asm__ volatile("cpuid" : "+a"(a), "=b"(b), "+c"(c), "=d"(d) : : "memory");
}

static void *reader(void *arg) {
    const unsigned me = (unsigned)(uintptr_t)arg;
    pin((me + 1) * (cores / (kReaders + 1) ? cores / (kReaders + 1) : 1));
    atomic_fetch_add(&there, 1);
    for (unsigned last = 0; last < rounds;) {
        const unsigned now = atomic_load(&written);
        if (now == last) {
            if (cores <= kReaders)
                sched_yield();
            continue;
        }
        serialize();
        if (run() < now)
            atomic_fetch_add(&stale, 1);
        atomic_fetch_add(&ran, 1);
        atomic_store(&seen[me][0], last = now);
    }
    return NULL;
}

int main(int argc, char **argv) {
    if (argc > 1)
        rounds = (unsigned)strtoul(argv[1], NULL, 0);
    cores = (unsigned)sysconf(_SC_NPROCESSORS_ONLN);
    code = mmap(NULL, kPage, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (code == MAP_FAILED)
        return perror("mmap"), 1;
    code[kOperand - 1] = 0xb8;
    code[kOperand + 4] = 0xc3;
    pthread_t thread[kReaders];
    for (uintptr_t i = 0; i < kReaders; ++i)
        pthread_create(&thread[i], NULL, reader, (void *)i);
    pin(0); // after them, as a thread begins on a core that its creator may use
    while (atomic_load(&there) < kReaders)
        sched_yield();
    printf("moscope: modifying\n");
    fflush(stdout);
    for (unsigned n = 1; n <= rounds; ++n) {
        *(volatile uint32_t *)(code + kOperand) = n;
        if (run() != n)
            atomic_fetch_add(&stale, 1);
        atomic_store(&written, n);
        for (unsigned i = 0; n % 4 == 0 && i < kReaders; ++i) // three of four values may be missed
            while (atomic_load(&seen[i][0]) < n)
                if (cores <= kReaders)
                    sched_yield();
    }
    for (int i = 0; i < kReaders; ++i)
        pthread_join(thread[i], NULL);
    printf("crossmod: %u values, run %u times by others\n", rounds, atomic_load(&ran));
    printf(atomic_load(&stale) ? "crossmod: WRONG, %u times old code\n" : "crossmod: right\n", atomic_load(&stale));
    return atomic_load(&stale) != 0;
}
