// SPDX-License-Identifier: BSD-3-Clause
// pedsort: the parallel indexer of Psearchy as the MOSBENCH paper describes it (sections 3.6 and 5.7). Cores take files from
// one queue and record the position of each word in a table of their own. A full table is sorted and written to an
// intermediate file. `kRuns` intermediate files are merged into an index of positions and a Berkeley DB that maps each word to
// its place in the index. main.c has the options, the queue and the check.
#pragma once

#include "../common/words.h"
#include "../common/workload.h"

#include <stdatomic.h>

enum {
    kShapes = 12, // sizes of files
    kRuns = 32,   // intermediate files merged at a time: more than a measurement makes
    kPage = 4096, // of a database
    kSmallestTable = 4096, // bytes: room for tens of words
    kDatabaseEntries = 200000,
};

extern unsigned files_there; // input files
extern uint64_t file_bytes;  // their mean size
extern unsigned long folds;  // rounds of computing for each word

_Noreturn void fail(const char *what);

// --- input (input.c) -------------------------------------------------------------------------------------------------

uint64_t size_of_file(unsigned file);
void make_file(unsigned file);
// Calls `each` for all words of a file, in order, as the generator made them.
void words_of(unsigned file, void (*each)(unsigned rank, uint32_t position, void *), void *context);

// --- table (table.c) -------------------------------------------------------------------------------------------------

typedef struct Block {
    struct Block *next;
    uint64_t at[3]; // file << 32 | position
} Block;

typedef struct Word {
    struct Word *next; // in the chain of its bucket
    Block *first, *last;
    uint32_t count;
    char text[kWordRoom];
} Word;

typedef struct {
    unsigned core;
    uint64_t room, used; // of the table's memory
    char *memory;
    Word **buckets;
    unsigned bucket_count;
    Word **words; // in order of arrival until they are sorted
    unsigned word_count;
    unsigned runs, merged; // intermediate files that wait; indexes made
} Table;

void table_make(Table *, unsigned core, uint64_t room);
// Reads a file and records its words; sorts, flushes and merges when the table is full.
void table_index(Table *, unsigned file);
// Flushes what is left and merges all intermediate files.
void table_finish(Table *);

// --- merge (merge.c) -------------------------------------------------------------------------------------------------

// In an intermediate file and in an index, each word's postings follow its record.
typedef struct {
    uint32_t count;
    char text[kWordRoom];
} Record;

void merge(Table *);

// --- database (database.c) -------------------------------------------------------------------------------------------

typedef struct {
    uint64_t offset; // of the record in the index
    Record record;
} Entry;
typedef struct {
    struct __db *handle; // the library's DB
    unsigned entries;
} Database;

// The first three end the program if the library reports an error.
Database database_make(unsigned core, unsigned number);
void database_put(Database *, const Entry *);
void database_close(Database *);
// Calls `each` for the entries of a closed database in their order, until it returns 0; whether all could be read.
int database_each(unsigned core, unsigned number, int (*each)(const Entry *, void *), void *context);
