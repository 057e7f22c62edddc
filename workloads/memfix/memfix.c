// SPDX-License-Identifier: BSD-3-Clause
// memfix [fault]: a stress test of what one fix of the MOSBENCH paper's figure 1 changes in the management of
// memory, with as little of the others' as the kernel's interface allows, by a process on each core.
//
//   fault  fix 15  a page of 2 MiB of the process's own, which stays in the page cache, unmapped and mapped again
//
// Every answer is checked.
#define _GNU_SOURCE
#include "../common/workload.h"

#include <errno.h>
#include <sys/mman.h>

enum { kHuge = 2 << 20 };

static Options options = {.name = "memfix", .variants = {"fault"}};
static struct Done {
    _Alignas(kLine) uint64_t done, wrong;
} *of; // by process
static char *page; // the process's, of 2 MiB

static _Noreturn void fail(const char *what) {
    fprintf(stderr, "memfix: %s: %s\n", what, strerror(errno));
    exit(1);
}

// One huge page for each process, and some for nodes where none runs.
static void pool_make(void) {
    FILE *const pool = fopen("/proc/sys/vm/nr_hugepages", "r+");
    unsigned long there = 0, wanted = 2 * options.cores;
    if (!pool)
        fail("/proc/sys/vm/nr_hugepages");
    fscanf(pool, "%lu", &there);
    if (there < wanted && simulated) { // not the settings of a real machine
        rewind(pool);
        fprintf(pool, "%lu\n", wanted);
        fflush(pool);
        rewind(pool);
        fscanf(pool, "%lu", &there);
    }
    fclose(pool);
    if (there < wanted) {
        fprintf(stderr, "memfix: %lu huge pages: %lu are needed\n", there, wanted);
        exit(1);
    }
}

static int fault_once(uint64_t number) {
    uint64_t *const word = (uint64_t *)page;
    const int right = *word == number;
    *word = number + 1;
    return !madvise(page, kHuge, MADV_DONTNEED) && right;
}

static void prepare(unsigned i) {
    (void)i;
    page = mmap(NULL, kHuge, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_HUGETLB, -1, 0);
    if (page == MAP_FAILED || !fault_once(0))
        fail("page");
}

static void work(unsigned i) {
    for (; goes_on(&options, of[i].done); ++of[i].done) {
        of[i].wrong += !fault_once(of[i].done + 1);
        operation_done();
    }
}

int main(int argc, char **argv) {
    options.prepare = prepare;
    options_read(&options, argc, argv, NULL, 0);
    pool_make();
    of = shared_memory(options.cores * sizeof *of);
    const int ended = run_processes(&options, work);
    uint64_t total = 0, wrong = 0;
    for (unsigned i = 0; i < options.cores; ++i) {
        total += of[i].done;
        wrong += of[i].wrong;
    }
    printf("moscope: memfix operations=%llu wrong=%llu verify=%s\n", (unsigned long long)total, (unsigned long long)wrong,
           ended && !wrong ? "ok" : "wrong");
    return !(ended && !wrong);
}
