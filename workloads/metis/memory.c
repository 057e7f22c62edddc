// SPDX-License-Identifier: BSD-3-Clause
// Memory of a job, from mmap. A page is there only when a core touches it.
#define _GNU_SOURCE
#include "metis.h"

#include <sys/mman.h>

enum { kHuge = 2 << 20 };

static int huge_pages, from_pool;

void memory_prepare(int huge, size_t each) {
    huge_pages = huge;
    if (!huge)
        return;
    // Half as many again: the pool spreads over all nodes, and the tables may be on few.
    const size_t wanted = options.cores * (each / kHuge + 1) * 3 / 2;
    FILE *const pool = simulated ? fopen("/proc/sys/vm/nr_hugepages", "r+") : NULL; // not the settings of a real machine
    unsigned long there = 0;
    if (pool) {
        fprintf(pool, "%zu\n", wanted);
        fflush(pool);
        rewind(pool);
        from_pool = fscanf(pool, "%lu", &there) == 1 && there >= wanted;
        fclose(pool);
    }
    printf("moscope: metis huge_pages=%s\n", from_pool ? "hugetlbfs" : "transparent");
}

Arena arena_make(size_t size) {
    const int flags = MAP_PRIVATE | MAP_ANONYMOUS | (huge_pages && from_pool ? MAP_HUGETLB : 0);
    // Room to begin at a multiple of a huge page where the kernel does not see to it.
    const size_t slack = huge_pages && !from_pool ? kHuge : 0;
    size = (size + kHuge - 1) & ~(size_t)(kHuge - 1);
    char *at = mmap(NULL, size + slack, PROT_READ | PROT_WRITE, flags, -1, 0);
    if (at == MAP_FAILED)
        fail("mmap");
    if (slack) {
        char *const aligned = (char *)(((uintptr_t)at + kHuge - 1) & ~(uintptr_t)(kHuge - 1));
        if (aligned > at)
            munmap(at, (size_t)(aligned - at));
        if (at + slack > aligned)
            munmap(aligned + size, (size_t)(at + slack - aligned));
        at = aligned;
    }
    madvise(at, size, huge_pages ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
    return (Arena){at, size, 0};
}

void *arena_take(Arena *a, size_t size) {
    size = (size + 7) & ~(size_t)7;
    if (a->used + size > a->size)
        fail("arena: the words of a part need more memory");
    void *const at = a->at + a->used;
    a->used += size;
    return at;
}

void arena_free(Arena *a) {
    if (a->at && munmap(a->at, a->size))
        fail("munmap");
    *a = (Arena){0};
}
