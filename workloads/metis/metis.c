// SPDX-License-Identifier: BSD-3-Clause
// metis [4k|2m] [--phase job|map|reduce] [--input SIZE] (of each core) [--words N] [--rounds N]: see metis.h.
//
// `job` repeats whole jobs, `map` and `reduce` only this phase: its operations are those of one phase. An operation is a
// step: a block of 4 KiB mapped, or as large a part of a core's chains reduced. At the end, the counts of every word over all jobs
// are compared with the text, and a last job compares every position.
#include "metis.h"

#include <errno.h>
#include <stdatomic.h>

static void prepare(unsigned);
Options options = {.name = "metis", .variants = {"4k", "2m"}, .prepare = prepare};
Core cores[kMaxCores];
char *text;
unsigned blocks, words, chains;
unsigned long rounds;
uint64_t *found;

static const char *phase = "job";
static uint64_t *times; // that the words of each block were counted, by core and block
static int maps, reduces;

_Noreturn void fail(const char *what) {
    fprintf(stderr, "metis: %s: %s\n", what, strerror(errno));
    exit(1);
}

// --- meetings of all cores -------------------------------------------------------------------------------------------

static struct { _Alignas(kLine) atomic_uint n; } here, round_number;

static void meet(void) {
    unsigned spins = 0;
    const unsigned now = atomic_load(&round_number.n);
    if (atomic_fetch_add(&here.n, 1) + 1 == options.cores) {
        atomic_store(&here.n, 0);
        atomic_store(&round_number.n, now + 1);
        return;
    }
    while (atomic_load(&round_number.n) == now)
        wait_a_little(&spins);
}

// --- the course of a core --------------------------------------------------------------------------------------------

static void done(Core *c, int counted) {
    if (!counted)
        return;
    ++c->operations;
    operation_done();
}

static void phase_begins(unsigned i, unsigned which) {
    if (i == 0 && simulated)
        m5_work_begin(which, 0);
}

static void map(unsigned i, int counted) {
    phase_begins(i, kMap);
    table_make(&cores[i]);
    for (unsigned b = 0; b < blocks && !(counted && stopped); ++b) {
        map_block(&cores[i], b);
        times[i * blocks + b] += !counted || reduces;
        done(&cores[i], counted);
    }
    meet();
}

static unsigned first_chain(unsigned core) { return (unsigned)((uint64_t)core * chains / options.cores); }

static void reduce(unsigned i, int counted) {
    phase_begins(i, kReduce);
    arena_renew(&cores[i].index, index_size());
    const unsigned first = first_chain(i), end = first_chain(i + 1);
    unsigned steps = 0;
    for (unsigned chain = first; chain < end; ++chain) {
        reduce_chain(&cores[i], chain, !counted);
        for (const unsigned due = (chain + 1 - first) * blocks / (end - first); steps < due; ++steps)
            done(&cores[i], counted);
    }
    for (unsigned b = 0; !maps && b < blocks; ++b)
        ++times[i * blocks + b]; // all words are counted once more
    meet();
}

static void work(unsigned i) {
    // Atomic, as the meeting alone does not make the compiler read it again.
    static struct { _Alignas(kLine) atomic_int on; } goes;
    for (;;) {
        if (i == 0)
            goes.on = goes_on(&options, cores[0].operations);
        meet();
        if (!goes.on)
            break;
        if (maps)
            map(i, 1);
        if (reduces)
            reduce(i, 1);
    }
    if (maps)
        map(i, 0);
    reduce(i, 0);
}

static unsigned tables(void) { return maps ? kPieces : 1; }

// Cores begin in different places of their arenas, on a page that is there: neither do all fault at once when the region begins, nor
// do they come to the ends of their arenas together, where all cores have to forget translations.
static void begin_within(Arena *a, size_t size, unsigned i) {
    a->used = (a->size - size) / 1000 * (i * 618 % 1000) & ~(size_t)(kLine - 1);
    a->at[a->used] = 0;
}

static void prepare(unsigned i) {
    Core *const c = &cores[i];
    text_make(i);
    c->table = arena_make(table_size(), tables());
    c->index = arena_make(index_size(), kPieces);
    begin_within(&c->index, index_size(), i);
    if (maps) {
        begin_within(&c->table, table_size(), i);
        return;
    }
    table_make(c);
    for (unsigned b = 0; b < blocks; ++b)
        map_block(c, b);
}

static int checked(void) {
    uint64_t *const expected = calloc(kPrefixes, sizeof *expected), wrong = 0;
    if (!expected)
        fail("memory");
    for (uint64_t b = 0; b < (uint64_t)options.cores * blocks; ++b)
        count_words(text + b * kBlock, times[b], expected);
    for (unsigned p = 0; p < kPrefixes; ++p)
        wrong += expected[p] != found[p];
    for (unsigned i = 0; i < options.cores; ++i)
        wrong += cores[i].wrong;
    return !wrong;
}

static _Noreturn void refuse(const char *option, const char *given, const char *right) {
    fprintf(stderr, "metis: --%s: \"%s\": %s would be right\n", option, given, right);
    exit(2);
}

int main(int argc, char **argv) {
    const char *input = "128KiB", *given_rounds = "8", *given_words = "0";
    const Extra extras[] = {{"phase", &phase}, {"input", &input}, {"rounds", &given_rounds}, {"words", &given_words}};
    options_read(&options, argc, argv, extras, 4);
    maps = strcmp(phase, "reduce") != 0;
    reduces = strcmp(phase, "map") != 0;
    if (maps && reduces && strcmp(phase, "job"))
        refuse("phase", phase, "job, map or reduce");
    const uint64_t part = size_of_text("--input", input);
    blocks = (unsigned)(part / kBlock);
    if (part % kBlock || !blocks || part * options.cores >> 32)
        refuse("input", input, "a multiple of 4KiB");
    words = (unsigned)number_of_text("metis", "--words", given_words, 0, kVocabulary);
    words = words ? words : blocks * kWordsOfBlock;
    chains = (words * kChains + kChainWords - 1) / kChainWords;
    rounds = (unsigned)number_of_text("metis", "--rounds", given_rounds, 0, 1000000);
    if (words > kVocabulary)
        refuse("input", input, "at most 8MiB, or fewer --words,");
    text = shared_memory(part * options.cores);
    found = calloc(kPrefixes, sizeof *found);
    times = calloc((size_t)options.cores * blocks, sizeof *times);
    if (!found || !times)
        fail("memory");
    memory_prepare(options.variant[0] == '2', arena_room(table_size(), tables()) + arena_room(index_size(), kPieces));
    run_threads(&options, work);
    uint64_t total = 0;
    for (unsigned i = 0; i < options.cores; ++i)
        total += cores[i].operations;
    const int right = checked();
    printf("moscope: metis operations=%llu verify=%s\n", (unsigned long long)total, right ? "ok" : "wrong");
    return !right;
}
