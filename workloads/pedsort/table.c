// SPDX-License-Identifier: BSD-3-Clause
// Phase 1: the table of words of a core. glibc's qsort is a merge sort, `msort_with_tmp`.
#include "pedsort.h"

enum { kChain = 8 }; // words in a bucket of a full table

static void empty(Table *t) {
    t->used = 0;
    t->word_count = 0;
    memset(t->buckets, 0, t->bucket_count * sizeof *t->buckets);
}

void table_make(Table *t, unsigned core, uint64_t room) {
    const uint64_t words = room / (sizeof(Word) + sizeof(Block)) + 1;
    *t = (Table){.core = core, .room = room, .bucket_count = (unsigned)(words / kChain + 1)};
    t->memory = malloc(room);
    t->words = malloc(words * sizeof *t->words);
    t->buckets = malloc(t->bucket_count * sizeof *t->buckets);
    if (!t->memory || !t->words || !t->buckets)
        fail("memory");
    empty(t);
}

static void *take(Table *t, size_t size) {
    void *const at = t->memory + t->used;
    t->used += size;
    return at;
}

// What the indexer computes for a word beside the look-up.
static uint32_t __attribute__((noinline)) fold(const char *text, unsigned length) {
    uint32_t hash = 2166136261u;
    for (unsigned long round = 0; round <= folds; ++round)
        for (unsigned i = 0; i < length; ++i)
            hash = (hash ^ (unsigned char)text[i]) * 16777619u;
    return hash;
}

static Word *__attribute__((noinline)) find(Table *t, const char *text, uint32_t hash) {
    Word **const bucket = &t->buckets[hash % t->bucket_count];
    for (Word *w = *bucket; w; w = w->next)
        if (!strcmp(w->text, text))
            return w;
    Word *const w = take(t, sizeof *w);
    *w = (Word){.next = *bucket};
    memcpy(w->text, text, sizeof w->text);
    *bucket = w;
    t->words[t->word_count++] = w;
    return w;
}

static void record(Table *t, const char *text, unsigned length, uint64_t posting) {
    Word *const w = find(t, text, fold(text, length));
    const unsigned at = w->count++ % 3;
    if (at == 0) {
        Block *const b = take(t, sizeof *b);
        b->next = NULL;
        *(w->first ? &w->last->next : &w->first) = b;
        w->last = b;
    }
    w->last->at[at] = posting;
}

static int alphabetical(const void *a, const void *b) { return strcmp((*(Word *const *)a)->text, (*(Word *const *)b)->text); }

static void flush(Table *t) {
    char name[32];
    qsort(t->words, t->word_count, sizeof *t->words, alphabetical);
    snprintf(name, sizeof name, "w%u.%u", t->core, t->runs);
    FILE *const stream = fopen(name, "w");
    if (!stream)
        fail(name);
    for (unsigned i = 0; i < t->word_count; ++i) {
        const Word *const w = t->words[i];
        Record r = {.count = w->count};
        memcpy(r.text, w->text, sizeof r.text);
        fwrite(&r, sizeof r, 1, stream);
        uint32_t left = w->count;
        for (const Block *b = w->first; b; b = b->next) {
            const uint32_t here = left < 3 ? left : 3;
            fwrite(b->at, sizeof *b->at, here, stream);
            left -= here;
        }
    }
    if (fclose(stream))
        fail(name);
    empty(t);
    if (++t->runs == kRuns)
        merge(t);
}

void table_index(Table *t, unsigned file) {
    char name[32], text[kWordRoom] = "";
    snprintf(name, sizeof name, "f%u", file);
    // `m`: the stream maps the file, as glibc's streams did by themselves when the paper was written.
    FILE *const stream = fopen(name, "rm");
    if (!stream)
        fail(name);
    uint32_t position = 0;
    unsigned length = 0;
    for (int c; (c = getc(stream)) != EOF;) {
        if (c >= 'a' && c <= 'z' && length < kWordRoom - 1) {
            text[length++] = (char)c;
            continue;
        }
        if (!length)
            continue;
        memset(text + length, 0, sizeof text - length);
        record(t, text, length, (uint64_t)file << 32 | position++);
        length = 0;
        if (t->used + sizeof(Word) + sizeof(Block) > t->room)
            flush(t);
    }
    if (fclose(stream))
        fail(name);
}

void table_finish(Table *t) {
    if (t->word_count)
        flush(t);
    if (t->runs)
        merge(t);
    free(t->memory);
    free(t->words);
    free(t->buckets);
}
