// SPDX-License-Identifier: BSD-3-Clause
// memfix [fault|clear|count]: a stress test of what one fix of the MOSBENCH paper's figure 1 changes in the management of
// memory, with as little of the others' as the kernel's interface allows, by a process on each core.
//
//   fault  fix 15  a page of 2 MiB of the process's own, which stays in the page cache, unmapped and mapped again
//   clear  fix 16  a transparent page of 2 MiB that the kernel clears, and then the words of a set that fits into the core's
//                  caches. The pages are of other nodes, so that DRAM takes what the cores write. (A fault on a page of
//                  hugetlbfs would wait for a mutex of 6.1's table.)
//   count  fix 11  a child made and ended, whose page table has all pages of a file that the processes share: both change
//                  the counts of each page, and read what lies beside them
//
// Every answer is checked. `clear` looks at two bytes of each page that it gets. In the end, each process has a page cleared
// that it had filled, and another one on the next core finds all of it zero.
#define _GNU_SOURCE
#include "../common/workload.h"

#include <errno.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>

enum { kHuge = 2 << 20, kPage = 4096, kKept = 384 << 10, kShared = 256 };

static Options options = {.name = "memfix", .variants = {"fault", "clear", "count"}};
static struct Done {
    _Alignas(kLine) uint64_t done, wrong;
} *of; // by process
static int file;
static char *page; // the process's, of 2 MiB; for `count` all pages of the file
_Alignas(kPage) static uint64_t kept[kKept / sizeof(uint64_t)];

static _Noreturn void fail(const char *what) {
    fprintf(stderr, "memfix: %s: %s\n", what, strerror(errno));
    exit(1);
}

static char *mapped(size_t size, int flags, int from) {
    char *const at = mmap(NULL, size, PROT_READ | PROT_WRITE, flags, from, 0);
    if (at == MAP_FAILED)
        fail("mmap");
    return at;
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

// A walk through all lines of the set in an order that the prefetcher does not know; each word names the next.
static void kept_make(void) {
    enum { kLines = kKept / kLine, kWords = kLine / sizeof(uint64_t), kStep = 1237 }; // no divisor in common
    for (unsigned i = 0, at = 0; i < kLines; ++i) {
        const unsigned next = (at + kStep) % kLines;
        kept[at * kWords] = next * kWords;
        at = next;
    }
}

static int kept_read(void) {
    uint64_t at = 0;
    unsigned lines = 0;
    do {
        at = kept[at];
        ++lines;
    } while (at);
    return lines == kKept / kLine;
}

// The exit status of a child, -1 if there is none or it ended otherwise.
static int status_of(pid_t child) {
    int status;
    while (child > 0 && waitpid(child, &status, 0) < 0)
        if (errno != EINTR)
            return -1;
    return child > 0 && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

// The process's memory from now on comes from the next node, the one after that for the next process, and so on.
static void from_node_of(unsigned process) {
    enum { kPreferred = 1, kMost = 64 }; // MPOL_PREFERRED of linux/mempolicy.h
    unsigned long nodes = 0, mask;
    char name[64];
    do
        snprintf(name, sizeof name, "/sys/devices/system/node/node%lu", ++nodes);
    while (nodes < kMost - 1 && !access(name, F_OK));
    mask = 1ul << (process + 1) % nodes;
    if (syscall(SYS_set_mempolicy, kPreferred, &mask, kMost))
        fail("set_mempolicy");
}

static int fault_once(unsigned process, uint64_t number) {
    uint64_t *const word = (uint64_t *)page;
    const int right = *word == number;
    *word = number + 1;
    (void)process;
    return !madvise(page, kHuge, MADV_DONTNEED) && right;
}

// The first access is a store: a load would map the page of zeros that all share.
static int clear_once(unsigned process, uint64_t number) {
    const size_t place = 1 + (number * 4099 + process) % (kHuge - 2);
    page[0] = 1;
    const int right = !page[place] && !page[kHuge - 1];
    page[place] = page[kHuge - 1] = 1; // seen again if the page is not cleared
    return kept_read() && !madvise(page, kHuge, MADV_DONTNEED) && right;
}

// Whether the page is one of 2 MiB, and not pages of 4 KiB, which other code clears.
static int huge(void) {
    FILE *const maps = fopen("/proc/self/smaps_rollup", "r");
    char line[256];
    unsigned long of_size = 0;
    while (maps && fgets(line, sizeof line, maps))
        sscanf(line, "AnonHugePages: %lu", &of_size);
    if (maps)
        fclose(maps);
    return of_size >= kHuge >> 10;
}

static int clear_wholly(unsigned process) {
    memset(page, 0xa5, kHuge);
    if (madvise(page, kHuge, MADV_DONTNEED))
        return 0;
    page[0] = 1;
    if (!huge()) {
        fprintf(stderr, "memfix: no page of 2 MiB: transparent huge pages are needed\n");
        return 0;
    }
    const pid_t reader = fork();
    if (!reader) {
        size_t nonzero = 0;
        pin(process + 1);
        for (size_t at = 1; at < kHuge; ++at)
            nonzero += page[at] != 0;
        _exit(nonzero != 0);
    }
    return status_of(reader) == 0;
}

// A file in memory whose pages are numbered.
static void file_make(void) {
    static char out[kPage];
    if ((file = memfd_create("memfix", 0)) < 0)
        fail("memfd_create");
    for (unsigned p = 0; p <= kShared; ++p) {
        memset(out, (int)p, sizeof out);
        if (write(file, out, sizeof out) != sizeof out)
            fail("write");
    }
}

static int count_once(unsigned process, uint64_t number) {
    const unsigned p = (unsigned)(process * 31 + number) % kShared;
    const pid_t child = fork();
    if (!child)
        _exit(page[kPage * p] == (char)p ? 7 : 1);
    return status_of(child) == 7;
}

static int (*once)(unsigned process, uint64_t number);

static void prepare(unsigned i) {
    if (once == clear_once) {
        kept_make();
        from_node_of(i);
        char *const at = mapped(2 * kHuge, MAP_PRIVATE | MAP_ANONYMOUS, -1);
        page = (char *)(((uintptr_t)at + kHuge - 1) & ~(uintptr_t)(kHuge - 1));
        if (madvise(page, kHuge, MADV_HUGEPAGE))
            fail("madvise");
    } else if (once == fault_once) {
        page = mapped(kHuge, MAP_SHARED | MAP_ANONYMOUS | MAP_HUGETLB, -1);
        *(uint64_t *)page = 0;
    } else {
        page = mapped(kPage * (kShared + 1), MAP_PRIVATE, file);
        page[kPage * kShared] = 1; // a page of its own: without one, fork leaves the pages of a file to faults
        for (unsigned p = 0; p < kShared; ++p)
            (void)*(volatile char *)&page[kPage * p];
    }
    if (!once(i, 0))
        fail("first operation");
}

static void work(unsigned i) {
    for (; goes_on(&options, of[i].done); ++of[i].done) {
        of[i].wrong += !once(i, of[i].done + 1);
        operation_done();
    }
    of[i].wrong += once == clear_once && !clear_wholly(i);
}

int main(int argc, char **argv) {
    options.prepare = prepare;
    options_read(&options, argc, argv, NULL, 0);
    once = options.variant[0] == 'f' ? fault_once : options.variant[1] == 'l' ? clear_once : count_once;
    if (once == fault_once)
        pool_make();
    if (once == count_once)
        file_make();
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
