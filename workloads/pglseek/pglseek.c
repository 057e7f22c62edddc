// SPDX-License-Identifier: BSD-3-Clause
// pglseek [--query CYCLES] [--seeks N] [--directory PATH]: PostgreSQL's kernel side for fix 14 of the MOSBENCH paper. A process on
// each core answers queries: each looks up a key in an index and the row in a table, both in memory that the processes have
// in common, as PostgreSQL has its buffers, and computes; on the way it asks several times how long the two files are (lseek to
// the end), and every sixteenth query reads its row's block from the file (lseek, read). All use the same two files, each
// process through descriptors of its own. An operation is a query; rows, sizes and blocks are checked.
//
// How much it computes and how often it seeks decide where a mutex of the inode saturates. By default a query takes what
// the paper's figure for one core leaves (`kQueryCycles`).
#define _GNU_SOURCE
#include "../common/workload.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

enum {
    kBlock = 8192,
    kRowBytes = 64,
    kRows = 1 << 18, // 16 MiB of rows
    kIndexBytes = 1 << 20,
    kReadsEvery = 16,
    // 40 us at 2.4 GHz: some 25 000 queries per second and core, the top of the paper's axis.
    kQueryCycles = 96000,
    kSeeks = 4, // of each query, half of them on either file; assumed
    kFold = 512,
};

typedef struct {
    uint32_t key, value;
    uint32_t rest[kRowBytes / 4 - 2];
} Row;

static Options options = {.name = "pglseek"};
static const char *directory = "/run/pglseek";
static unsigned long query_rounds, seeks;
static Row *rows; // the server's buffers: the table's content
static uint32_t *index_; // row number by key
static struct Done {
    _Alignas(kLine) uint64_t done, wrong;
} *of;

static _Noreturn void fail(const char *what) {
    fprintf(stderr, "pglseek: %s: %s\n", what, strerror(errno));
    exit(1);
}

static uint32_t value_of(uint32_t key) { return key * 2654435761u ^ 0x5bd1e995u; }
static uint32_t row_of(uint32_t key) { return (key * 48271u + 11) % kRows; }

// The computing of a query: rounds of hashing over what a parser, planner and executor hold, in the first cache.
static uint32_t __attribute__((noinline)) compute(uint32_t seed, unsigned long rounds) {
    static _Thread_local uint32_t state[kFold];
    for (unsigned long r = 0; r < rounds; ++r) {
        uint32_t h = seed + (uint32_t)r;
        for (unsigned i = 0; i < kFold; ++i) {
            h = (h ^ state[i]) * 16777619u;
            state[i] = h >> 3;
        }
        seed ^= h;
    }
    return seed;
}

static int size_is(int file, off_t size) { return lseek(file, 0, SEEK_END) == size; }

static int query(int table, int index, uint32_t key, uint64_t number) {
    int well = 1;
    for (unsigned i = 0; i < seeks; ++i)
        well &= i % 2 ? size_is(index, kIndexBytes) : size_is(table, (off_t)kRows * kRowBytes);
    const uint32_t at = index_[key];
    well &= rows[at].key == key && rows[at].value == value_of(key);
    if (number % kReadsEvery == 0) {
        Row block[kBlock / kRowBytes];
        const off_t begin = (off_t)at * kRowBytes / kBlock * kBlock;
        well &= lseek(table, begin, SEEK_SET) == begin && read(table, block, sizeof block) == sizeof block &&
                block[at % (kBlock / kRowBytes)].value == value_of(key);
    }
    volatile uint32_t result = compute(key, query_rounds);
    (void)result;
    return well;
}

static void work(unsigned i) {
    const int table = open("table", O_RDWR), index = open("index", O_RDWR);
    if (table < 0 || index < 0)
        fail("table, index");
    uint32_t key = i * 7919u;
    for (; goes_on(&options, of[i].done); ++of[i].done) {
        key = key * 1664525u + 1013904223u;
        of[i].wrong += !query(table, index, (key >> 8) % kRows, of[i].done);
        operation_done();
    }
}

static void file_of(const char *name, const void *bytes, size_t size) {
    const int f = open(name, O_WRONLY | O_CREAT | O_EXCL, 0644);
    if (f < 0)
        fail(name);
    for (size_t done = 0; done < size;) {
        const ssize_t n = write(f, (const char *)bytes + done, size - done);
        if (n <= 0)
            fail(name);
        done += (size_t)n;
    }
    close(f);
}

static void make(void) {
    // Read only from here on, so a forked process has the same pages, and the page tables for them too.
    rows = calloc(kRows, sizeof *rows);
    index_ = calloc(kRows, sizeof *index_);
    if (!rows || !index_)
        fail("memory");
    for (uint32_t key = 0; key < kRows; ++key) {
        index_[key] = row_of(key);
        rows[index_[key]] = (Row){.key = key, .value = value_of(key)};
    }
    if (mkdir(directory, 0755) || chdir(directory))
        fail(directory);
    file_of("table", rows, (size_t)kRows * sizeof(Row));
    file_of("index", index_, kIndexBytes);
    of = shared_memory(options.cores * sizeof *of);
}

static unsigned long number(const char *option, const char *text) { return number_of_text("pglseek", option, text, 0, 1000000000); }

int main(int argc, char **argv) {
    const char *cycles_text = NULL, *seeks_text = NULL;
    const Extra extras[] = {{"query", &cycles_text}, {"seeks", &seeks_text}, {"directory", &directory}};
    options_read(&options, argc, argv, extras, 3);
    // A round is kFold steps of a chain of xor and multiply, four cycles on this processor, and what the load, shift and
    // store beside it take.
    query_rounds = (cycles_text ? number("--query", cycles_text) : kQueryCycles) / (kFold * 8);
    seeks = seeks_text ? number("--seeks", seeks_text) : kSeeks;
    make();
    const int ended = run_processes(&options, work);
    uint64_t total = 0, wrong = 0;
    for (unsigned i = 0; i < options.cores; ++i) {
        total += of[i].done;
        wrong += of[i].wrong;
    }
    const int removed = !unlink("table") & !unlink("index") & !chdir("/") & !rmdir(directory);
    const int right = ended && removed && !wrong;
    printf("moscope: pglseek operations=%llu wrong=%llu verify=%s\n", (unsigned long long)total, (unsigned long long)wrong,
           right ? "ok" : "wrong");
    return !right;
}
