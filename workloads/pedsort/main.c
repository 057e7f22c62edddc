// SPDX-License-Identifier: BSD-3-Clause
// pedsort [threads|processes] [--placement packed|spread] [--table SIZE] [--file SIZE] [--files N] [--fold N] [--directory PATH]
//
// threads share one address space, whose lock each mmap, munmap and page fault takes; processes do not. `packed` fills one
// chip after the other, `spread` goes round all chips. An operation is a file indexed. At the end, each word's postings in
// the indexes are compared with what the generator wrote, for each time that a file was indexed.
#define _GNU_SOURCE
#include "pedsort.h"

#include <errno.h>
#include <sched.h>
#include <sys/stat.h>

unsigned files_there;
uint64_t file_bytes;
unsigned long folds;

static const char *directory = "/run/pedsort", *placement = "packed";
static uint64_t table_room;
static Table tables[kMaxCores];
static void prepare(unsigned core);
static Options options = {.name = "pedsort", .variants = {"threads", "processes"}, .prepare = prepare};

// What threads or processes have in common.
static struct Shared {
    _Alignas(kLine) atomic_ulong next; // the queue
    _Alignas(kLine) struct {
        _Alignas(kLine) uint64_t done, merged;
    } of[kMaxCores];
    atomic_uint times[]; // that each file was indexed
} *shared;

_Noreturn void fail(const char *what) {
    fprintf(stderr, "pedsort: %s: %s\n", what, strerror(errno));
    exit(1);
}

static void index_once(Table *t, unsigned file) {
    table_index(t, file);
    atomic_fetch_add_explicit(&shared->times[file], 1, memory_order_relaxed);
}

// Where worker number i runs if workers go round all chips, where a chip is a NUMA node.
static unsigned placed[kMaxCores];
static void spread_out(void) {
    static unsigned node_of[kMaxCores];
    const unsigned count = cores_allowed();
    unsigned nodes = 0, cpu, placed_now = 0;
    for (unsigned c = 0; c < count; ++c) {
        pin(c);
        if (getcpu(&cpu, &node_of[c]))
            fail("getcpu");
        nodes = node_of[c] + 1 > nodes ? node_of[c] + 1 : nodes;
    }
    for (unsigned round = 0; placed_now < count; ++round)
        for (unsigned node = 0; node < nodes; ++node)
            for (unsigned c = 0, left = round; c < count; ++c)
                if (node_of[c] == node && !left--)
                    placed[placed_now++] = c;
}

// Before the region: this core's part of the files, and a table that is full to a different degree on each core, so that
// cores do not sort at the same time.
static void prepare(unsigned core) {
    if (placement[0] == 's')
        pin(placed[core % cores_allowed()]);
    for (unsigned f = core; f < files_there; f += options.cores)
        make_file(f);
    Table *const t = &tables[core];
    table_make(t, core, table_room);
    const uint64_t until = table_room / 1000 * (core * 618 % 1000);
    for (unsigned f = core; t->used < until && !t->runs; f += options.cores)
        index_once(t, f % files_there < core ? core : f % files_there);
}

static void work(unsigned core) {
    uint64_t done = 0;
    for (; goes_on(&options, done); ++done) {
        index_once(&tables[core], (unsigned)(atomic_fetch_add(&shared->next, 1) % files_there));
        operation_done();
    }
    table_finish(&tables[core]);
    shared->of[core].done = done;
    shared->of[core].merged = tables[core].merged;
}

// --- the check -------------------------------------------------------------------------------------------------------

// By the first four letters: number and sum of a word's postings, expected minus found.
static struct Balance {
    uint64_t count, sum;
} *balance;

static uint64_t mixed(uint64_t posting) {
    posting = (posting ^ posting >> 31) * 0x9e3779b97f4a7c15u;
    return posting ^ posting >> 29;
}

static void expect(unsigned rank, uint32_t position, void *file) {
    char text[kWordRoom];
    const unsigned f = *(unsigned *)file, times = atomic_load(&shared->times[f]);
    word_text(rank, text);
    struct Balance *const b = &balance[prefix_of(text)];
    b->count += times;
    b->sum += times * mixed((uint64_t)f << 32 | position);
}

typedef struct {
    FILE *index;
    char last[kWordRoom]; // word, to see that they are sorted
} Reader;

// Whether the index has this entry's record next; accounts for its postings.
static int account_word(const Entry *e, void *context) {
    Reader *const reader = context;
    Record r;
    if (strcmp(reader->last, e->record.text) >= 0 || ftell(reader->index) != (long)e->offset ||
        fread(&r, sizeof r, 1, reader->index) != 1 || r.count != e->record.count ||
        memcmp(r.text, e->record.text, sizeof r.text))
        return 0;
    memcpy(reader->last, r.text, sizeof reader->last);
    struct Balance *const b = &balance[prefix_of(r.text)];
    b->count -= r.count;
    uint64_t posting;
    for (uint32_t left = r.count; left; --left) {
        if (fread(&posting, sizeof posting, 1, reader->index) != 1)
            return 0;
        b->sum -= mixed(posting);
    }
    return 1;
}

// Whether all entries of a database are sorted and agree with the index.
static int account(unsigned core, unsigned number) {
    char name[32];
    snprintf(name, sizeof name, "i%u.%u", core, number);
    Reader reader = {.index = fopen(name, "r")};
    if (!reader.index || !database_each(core, number, account_word, &reader))
        return 0;
    int well = !fclose(reader.index) && !unlink(name);
    name[0] = 'd';
    return well && !unlink(name);
}

static int checked(void) {
    int well = 1;
    balance = calloc(kPrefixes, sizeof *balance);
    if (!balance)
        fail("memory");
    for (unsigned f = 0; f < files_there; ++f) {
        char name[32];
        words_of(f, expect, &f);
        snprintf(name, sizeof name, "f%u", f);
        well &= !unlink(name);
    }
    for (unsigned core = 0; core < options.cores; ++core)
        for (unsigned i = 0; i < shared->of[core].merged; ++i)
            well &= account(core, i);
    for (unsigned p = 0; p < kPrefixes; ++p)
        well &= !balance[p].count && !balance[p].sum;
    return well & !chdir("/") & !rmdir(directory);
}

static void refuse(const char *option, const char *given, const char *right) {
    fprintf(stderr, "pedsort: --%s: \"%s\": %s would be right\n", option, given, right);
    exit(2);
}

int main(int argc, char **argv) {
    const char *table = "1MiB", *file = "11KiB", *files = NULL, *fold = "48";
    const Extra extras[] = {{"placement", &placement}, {"table", &table}, {"file", &file},
                            {"files", &files},         {"fold", &fold},   {"directory", &directory}};
    options_read(&options, argc, argv, extras, 6);
    if (strcmp(placement, "packed") && strcmp(placement, "spread"))
        refuse("placement", placement, "packed or spread");
    table_room = size_of_text("--table", table);
    if (table_room < kSmallestTable)
        refuse("table", table, "at least 4KiB");
    file_bytes = size_of_text("--file", file);
    folds = number_of_text("pedsort", "--fold", fold, 0, 1000000);
    const unsigned by_cores = options.cores * 2 * kShapes;
    files_there = files ? (unsigned)size_of_text("--files", files) : by_cores > 504 ? by_cores : 504;
    if (files_there < options.cores || files_there > 1 << 20)
        refuse("files", files, "a number from that of cores to 1048576");
    if (mkdir(directory, 0755) || chdir(directory))
        fail(directory);
    shared = shared_memory(sizeof *shared + files_there * sizeof *shared->times);
    if (placement[0] == 's')
        spread_out();
    int ended = 1;
    if (options.variant[0] == 'p')
        ended = run_processes(&options, work);
    else
        run_threads(&options, work);
    uint64_t total = 0;
    for (unsigned i = 0; i < options.cores; ++i)
        total += shared->of[i].done;
    const int right = checked() && ended;
    printf("moscope: pedsort operations=%llu files=%u verify=%s\n", (unsigned long long)total, files_there, right ? "ok" : "wrong");
    return !right;
}
