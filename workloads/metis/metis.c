// SPDX-License-Identifier: BSD-3-Clause
// metis [4k|2m] [--phase job|map|reduce] [--input SIZE] (of each core): see metis.h.
//
// `job` repeats whole jobs, `map` and `reduce` only this phase: its operations are those of one phase. An operation is a
// step: a block of 4 KiB mapped or a chain of words reduced. A job has as many steps of one kind as of the other. At the end,
// the counts of every word over all jobs are compared with the text, and a last job compares every position.
#include "metis.h"

#include <errno.h>
#include <stdatomic.h>

static void prepare(unsigned);
Options options = {.name = "metis", .variants = {"4k", "2m"}, .prepare = prepare};
Core cores[kMaxCores];
char *text;
unsigned blocks, slots, columns;
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

static void reduce(unsigned i, int counted) {
    phase_begins(i, kReduce);
    cores[i].index = arena_make(index_size());
    for (unsigned chain = i * blocks; chain < (i + 1) * blocks; ++chain) {
        reduce_chain(&cores[i], chain, !counted);
        if (!maps)
            ++times[chain]; // any block's: all words are counted once more
        done(&cores[i], counted);
    }
    meet();
    arena_free(&cores[i].index);
}

static void work(unsigned i) {
    static atomic_int goes; // atomic, as the meeting alone does not make the compiler read it again
    for (;;) {
        if (i == 0)
            goes = goes_on(&options, cores[0].operations);
        meet();
        if (!goes)
            break;
        if (maps)
            map(i, 1);
        if (reduces)
            reduce(i, 1);
        if (maps)
            arena_free(&cores[i].table);
    }
    if (maps)
        map(i, 0);
    reduce(i, 0);
    arena_free(&cores[i].table);
}

static void prepare(unsigned i) {
    text_make(i);
    if (maps)
        return;
    table_make(&cores[i]);
    for (unsigned b = 0; b < blocks; ++b)
        map_block(&cores[i], b);
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
    const char *input = "128KiB";
    const Extra extras[] = {{"phase", &phase}, {"input", &input}};
    options_read(&options, argc, argv, extras, 2);
    maps = strcmp(phase, "reduce") != 0;
    reduces = strcmp(phase, "map") != 0;
    if (maps && reduces && strcmp(phase, "job"))
        refuse("phase", phase, "job, map or reduce");
    const uint64_t part = size_of_text("--input", input);
    blocks = (unsigned)(part / kBlock);
    slots = blocks < kMostSlots ? blocks : kMostSlots;
    if (part % kBlock || !blocks || blocks % slots || part * options.cores >> 32)
        refuse("input", input, "4KiB times 1 to 16, or a multiple of 64KiB,");
    columns = options.cores * (blocks / slots);
    text = shared_memory(part * options.cores);
    found = calloc(kPrefixes, sizeof *found);
    times = calloc((size_t)options.cores * blocks, sizeof *times);
    if (!found || !times)
        fail("memory");
    memory_prepare(options.variant[0] == '2', table_size() + index_size() + (4 << 20));
    run_threads(&options, work);
    uint64_t total = 0;
    for (unsigned i = 0; i < options.cores; ++i)
        total += cores[i].operations;
    const int right = checked();
    printf("moscope: metis operations=%llu verify=%s\n", (unsigned long long)total, right ? "ok" : "wrong");
    return !right;
}
