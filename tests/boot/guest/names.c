// SPDX-License-Identifier: BSD-3-Clause
// Touches memory of every kind that a process has and prints where it lies: name, virtual address, page frame as
// /proc/self/pagemap tells it. Then waits, so that the memory stays.
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

volatile unsigned long shared_counter __attribute__((aligned(64))) = 1;
volatile unsigned long table_of_zeros[4096];

static void show(int pagemap, const char *name, volatile const void *at) {
    (void)*(volatile const char *)at;
    const uintptr_t va = (uintptr_t)at;
    uint64_t entry = 0;
    if (pread(pagemap, &entry, sizeof entry, (off_t)(va / 4096 * sizeof entry)) != sizeof entry || !(entry >> 63))
        exit(1);
    printf("page %s %lx %lx\n", name, (unsigned long)va, (unsigned long)(entry & ((1ULL << 55) - 1)));
}

int main(int argc, char **argv) {
    const int pagemap = open("/proc/self/pagemap", O_RDONLY);
    const int file = open(argv[argc - 1], O_RDWR);
    unsigned long on_stack = 1;
    char *heap = malloc(100), *mapped = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    char *anonymous = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    char *shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED || pagemap < 0 || mapped == MAP_FAILED || anonymous == MAP_FAILED || !heap)
        return 1;
    shared_counter = table_of_zeros[2000] = 2;
    strcpy(heap, "heap");
    mapped[8] = anonymous[5000] = shared[100] = 3;
    show(pagemap, "shared_counter", &shared_counter);
    show(pagemap, "table_of_zeros", &table_of_zeros[2000]);
    show(pagemap, "heap", heap);
    show(pagemap, "stack", &on_stack);
    show(pagemap, "file", mapped + 8);
    show(pagemap, "anonymous", anonymous + 5000);
    show(pagemap, "shared", shared + 100);
    show(pagemap, "main", (const void *)(uintptr_t)main);
    printf("pid %d\n", getpid());
    fflush(stdout);
    for (;;)
        pause();
}
