// SPDX-License-Identifier: BSD-3-Clause
// Phase 2: merges the intermediate files of a core into an index and a database, and begins new ones when the database has
// its largest number of entries. The index has each word's record and postings.
#include "pedsort.h"

typedef struct {
    FILE *stream;
    Record record; // the next one; an empty text at the end
} Run;

static void advance(Run *r) {
    if (fread(&r->record, sizeof r->record, 1, r->stream) != 1)
        r->record.text[0] = 0;
}

static FILE *open_named(char kind, unsigned core, unsigned number, const char *mode) {
    char name[32];
    snprintf(name, sizeof name, "%c%u.%u", kind, core, number);
    FILE *const stream = fopen(name, mode);
    if (!stream)
        fail(name);
    return stream;
}

static void copy_postings(Run *from, FILE *to) {
    uint64_t postings[64];
    for (uint32_t left = from->record.count; left;) {
        const uint32_t n = left < 64 ? left : 64;
        if (fread(postings, sizeof *postings, n, from->stream) != n)
            fail("intermediate file");
        fwrite(postings, sizeof *postings, n, to);
        left -= n;
    }
    advance(from);
}

// The least word of all runs, with the sum of their counts.
static Record least(const Run *runs, unsigned count) {
    Record r = {0};
    for (unsigned i = 0; i < count; ++i) {
        const Record *const o = &runs[i].record;
        const int order = !o->text[0] ? 1 : r.text[0] ? strcmp(o->text, r.text) : -1;
        if (order < 0)
            r = *o;
        else if (order == 0)
            r.count += o->count;
    }
    return r;
}

static void close_all(Table *t, FILE *index, Database *d) {
    database_close(d);
    if (fclose(index))
        fail("index");
    ++t->merged;
}

void merge(Table *t) {
    Run runs[kRuns];
    for (unsigned i = 0; i < t->runs; ++i) {
        runs[i].stream = open_named('w', t->core, i, "rm");
        advance(&runs[i]);
    }
    FILE *index = open_named('i', t->core, t->merged, "w");
    Database d = database_make(t->core, t->merged);
    for (Entry e = {.record = least(runs, t->runs)}; e.record.text[0]; e.record = least(runs, t->runs)) {
        database_put(&d, &e);
        fwrite(&e.record, sizeof e.record, 1, index);
        for (unsigned i = 0; i < t->runs; ++i)
            if (!strcmp(runs[i].record.text, e.record.text))
                copy_postings(&runs[i], index);
        e.offset += sizeof e.record + e.record.count * sizeof(uint64_t);
        if (d.entries == kDatabaseEntries) {
            close_all(t, index, &d);
            index = open_named('i', t->core, t->merged, "w");
            d = database_make(t->core, t->merged);
            e.offset = 0;
        }
    }
    close_all(t, index, &d);
    for (unsigned i = 0; i < t->runs; ++i) {
        char name[32];
        snprintf(name, sizeof name, "w%u.%u", t->core, i);
        if (fclose(runs[i].stream) | unlink(name))
            fail(name);
    }
    t->runs = 0;
}
