// SPDX-License-Identifier: BSD-3-Clause
#include "metis.h"

// A core's part of the text has at most so many words; letters and space are at least five bytes.
static size_t most_words(void) { return (size_t)blocks * kBlock / 5; }
// An array of positions grows by doubling, from four. Parts of the text differ a little in how often they have a word.
size_t table_size(void) { return chains * sizeof(Word *) + words * (sizeof(Word) + 16) + most_words() * 16; }
size_t index_size(void) { return most_words() * 2 * sizeof(uint32_t) + 65536; }

static const char *block_of(const Core *c, unsigned block) { return text + ((uint64_t)(c - cores) * blocks + block) * kBlock; }

void text_make(unsigned core) {
    uint64_t state = core + 1;
    char word[kWordRoom];
    for (unsigned b = 0; b < blocks; ++b) {
        // No word crosses the end of a block.
        char *const block = text + ((uint64_t)core * blocks + b) * kBlock;
        memset(block, ' ', kBlock);
        for (unsigned at = 0; at + kWordRoom < kBlock;) {
            state = state * 6364136223846793005u + 1442695040888963407u;
            const unsigned length = word_text((unsigned)(state >> 40) % words, word);
            memcpy(block + at, word, length);
            at += length + 1;
        }
    }
}

// The next word of a block from `*at` on, and its length; 0 at the end.
static inline unsigned next_word(const char *block, unsigned *at) {
    while (*at < kBlock && block[*at] == ' ')
        ++*at;
    unsigned length = 0;
    while (*at + length < kBlock && block[*at + length] != ' ')
        ++length;
    return length;
}

void count_words(const char *block, uint64_t times, uint64_t *to) {
    for (unsigned at = 0, length; (length = next_word(block, &at)); at += length)
        to[prefix_of(block + at)] += times;
}

static int same(const Word *w, const char *word, unsigned length) { return !memcmp(w->text, word, length) && !w->text[length]; }

// The order within a chain: by hash, then by text.
static int before(const Word *w, uint32_t hash, const char *word, unsigned length) {
    return w->hash != hash ? w->hash < hash : memcmp(w->text, word, length) < 0;
}

static uint32_t hash_of(const char *word, unsigned length) {
    uint32_t hash = 2166136261u;
    for (unsigned i = 0; i < length; ++i)
        hash = (hash ^ (unsigned char)word[i]) * 16777619u;
    uint64_t quotient = hash;
    for (unsigned long i = 0; i < rounds; ++i)
        quotient = (UINT64_MAX - i) / (quotient | 3);
    return hash ^ (uint32_t)quotient;
}

static void enter(Core *c, const char *word, unsigned length, uint32_t position) {
    const uint32_t hash = hash_of(word, length);
    // All chains have equally many words: Metis samples its input to make its reduce tasks equal.
    Word **at = &c->chains[word_rank(word) % chains];
    while (*at && before(*at, hash, word, length))
        at = &(*at)->next;
    Word *w = *at;
    if (!w || w->hash != hash || !same(w, word, length)) {
        w = arena_take(&c->table, sizeof *w);
        *w = (Word){.next = *at, .hash = hash};
        memcpy(w->text, word, length);
        *at = w;
    }
    if (w->count == w->room) {
        w->room = w->room ? w->room * 2 : 4;
        uint32_t *const more = arena_take(&c->table, w->room * sizeof *more);
        if (w->count)
            memcpy(more, w->positions, w->count * sizeof *more);
        w->positions = more;
    }
    w->positions[w->count++] = position;
}

void table_make(Core *c) {
    arena_renew(&c->table, table_size());
    c->chains = arena_take(&c->table, chains * sizeof *c->chains);
}

void __attribute__((noinline)) map_block(Core *c, unsigned number) {
    const char *const block = block_of(c, number);
    for (unsigned at = 0, length; (length = next_word(block, &at)); at += length)
        enter(c, block + at, length, (uint32_t)(block + at - text));
}

static int equal(const Word *a, const Word *b) { return a->hash == b->hash && !strcmp(a->text, b->text); }

static const Word *least(Word *const *heads) {
    const Word *w = NULL;
    for (unsigned i = 0; i < options.cores; ++i)
        if (heads[i] && (!w || before(heads[i], w->hash, w->text, kWordRoom)))
            w = heads[i];
    return w;
}

static uint32_t *__attribute__((noinline)) concatenate(uint32_t *to, const Word *from) {
    memcpy(to, from->positions, from->count * sizeof *to);
    return to + from->count;
}

void __attribute__((noinline)) reduce_chain(Core *c, unsigned chain, int checked) {
    Word *heads[options.cores];
    for (unsigned i = 0; i < options.cores; ++i)
        heads[i] = cores[i].chains[chain];
    for (const Word *w; (w = least(heads));) {
        uint64_t total = 0;
        for (unsigned i = 0; i < options.cores; ++i)
            total += heads[i] && equal(heads[i], w) ? heads[i]->count : 0;
        uint32_t *const index = arena_take(&c->index, total * sizeof *index), *end = index;
        for (unsigned i = 0; i < options.cores; ++i)
            if (heads[i] && equal(heads[i], w)) {
                end = concatenate(end, heads[i]);
                heads[i] = heads[i]->next;
            }
        found[prefix_of(w->text)] += total;
        for (uint64_t i = 0; checked && i < total; ++i)
            c->wrong += !same(w, text + index[i], (unsigned)strlen(w->text));
    }
}
