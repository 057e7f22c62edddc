// SPDX-License-Identifier: BSD-3-Clause
// metis: the application wrmem of the MapReduce library Metis, as the MOSBENCH paper uses it (sections 3.7 and 5.8): an inverted
// index of a text in memory. A job maps the text and reduces what came of it.
//
// Map: each core enters the words of its part of the text and their positions into a hash table of its own. Reduce: a core takes
// its share of the chains from the tables of all cores and concatenates the positions of each word. Each job writes its tables and
// its index to pages that no core has touched before. The work for a byte of text does not depend on the number of cores.
#pragma once

#include "../common/words.h"
#include "../common/workload.h"

enum {
    kBlock = 4096,       // of text: a step of map
    kWordsOfBlock = 128, // of a core's part: different words, all equally frequent
    kChains = 3,         // for each kChainWords words: four chains for each core of 48 by default
    kChainWords = 16,
    kPieces = 4, // at least, that an arena holds
    kMap = 2,            // work identifiers
    kReduce = 3,
};

typedef struct Word {
    struct Word *next; // in its chain, in ascending order
    uint32_t hash, count, room;
    char text[kWordRoom];
    uint32_t *positions;
} Word;

// Memory of a core for one kind of data, from front to back.
typedef struct {
    char *at;
    size_t size, used;
} Arena;

typedef struct {
    _Alignas(kLine) Arena table, index;
    Word **chains;
    uint64_t operations, wrong;
} Core;

extern Options options;
extern Core cores[kMaxCores];
extern char *text;             // the input, a part of it for each core
extern unsigned blocks;        // of a core
extern unsigned words, chains; // of a table
extern unsigned long rounds;   // divisions for a word: computing
extern uint64_t *found;        // how often, by the first four letters of a word, over all jobs

_Noreturn void fail(const char *what);

// --- memory (memory.c) -----------------------------------------------------------------------------------------------

// Pages of 4 KiB, or of 2 MiB from hugetlbfs for `each` bytes of each core; without a pool of those, transparent ones.
void memory_prepare(int huge, size_t each);
// What an arena for some pieces of `size` bytes takes, and the arena.
size_t arena_room(size_t size, unsigned pieces);
Arena arena_make(size_t size, unsigned pieces);
// Makes sure that `size` bytes are there: at the end of the arena its pages go back to the kernel, and it begins again.
void arena_renew(Arena *, size_t size);
void *arena_take(Arena *, size_t size);

// --- the phases (phases.c) -------------------------------------------------------------------------------------------

size_t table_size(void); // at most
size_t index_size(void);
void text_make(unsigned core);
// Adds `times` for each word of a block to its entry of `to`, which is indexed as `found`.
void count_words(const char *block, uint64_t times, uint64_t *to);
void table_make(Core *);
void map_block(Core *, unsigned block);
// `checked` compares each position with the text.
void reduce_chain(Core *, unsigned chain, int checked);
