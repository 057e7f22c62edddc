// SPDX-License-Identifier: BSD-3-Clause
// Memory of jobs, from mmap. A page is there only when a core touches it. Successive jobs go through an arena from front to back,
// so that each has fresh pages, in whatever size, for the bytes that it needs.
#define _GNU_SOURCE
#include "metis.h"

#include <sys/mman.h>

enum { kHuge = 2 << 20, kRoom = 2 * kHuge };

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

size_t arena_room(size_t size, unsigned pieces) {
    return ((size * pieces > kRoom ? size * pieces : kRoom) + kHuge - 1) & ~(size_t)(kHuge - 1);
}

Arena arena_make(size_t size, unsigned pieces) {
    const int flags = MAP_PRIVATE | MAP_ANONYMOUS | (huge_pages && from_pool ? MAP_HUGETLB : 0);
    // Room to begin at a multiple of a huge page where the kernel does not see to it.
    const size_t slack = huge_pages && !from_pool ? kHuge : 0;
    size = arena_room(size, pieces);
    char *at = mmap(NULL, size + slack, PROT_READ | PROT_WRITE, flags, -1, 0);
    if (at == MAP_FAILED)
        fail("mmap");
    if (slack)
        at = (char *)(((uintptr_t)at + kHuge - 1) & ~(uintptr_t)(kHuge - 1));
    madvise(at, size, huge_pages ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
    return (Arena){at, size, 0};
}

void arena_renew(Arena *a, size_t size) {
    if (a->used + size <= a->size)
        return;
    // Unlike munmap, this leaves the process' list of mappings as it is.
    if (madvise(a->at, a->size, MADV_DONTNEED))
        fail("madvise");
    a->used = 0;
}

void *arena_take(Arena *a, size_t size) {
    size = (size + 7) & ~(size_t)7;
    if (a->used + size > a->size)
        fail("arena: the words of a part need more memory");
    void *const at = a->at + a->used;
    a->used += size;
    return at;
}
