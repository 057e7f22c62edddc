// SPDX-License-Identifier: BSD-3-Clause
// Words of pseudo-random text. Each power of two of ranks occurs equally often, which approximates Zipf's law.
#pragma once

#include <stdint.h>

enum {
    kOctaves = 18,
    kVocabulary = 1 << kOctaves,
    kWordRoom = 12,                // letters of a word, with the zero at its end
    kPrefixes = 26 * 26 * 26 * 26, // the first four letters are different in all words
};

// Number of the first four letters.
static inline unsigned prefix_of(const char *text) {
    unsigned n = 0;
    for (unsigned i = 0; i < 4; ++i)
        n = n * 26 + (unsigned)(text[i] - 'a');
    return n;
}

// The text of a word of the vocabulary; its length, 4 to 8.
static inline unsigned word_text(unsigned rank, char *into) {
    // The factor has no divisor in common with 26, so the product is a permutation.
    unsigned prefix = (unsigned)((uint64_t)rank * 83521u % kPrefixes), more = rank * 2654435761u >> 16;
    unsigned length = 4 + more % 5;
    for (unsigned i = 4; i-- > 0; prefix /= 26)
        into[i] = (char)('a' + prefix % 26);
    for (unsigned i = 4; i < length; ++i, more /= 5)
        into[i] = (char)('a' + more % 26);
    into[length] = 0;
    return length;
}

// The rank of a word of the vocabulary, from its first four letters. The factor is the inverse of word_text's.
static inline unsigned word_rank(const char *text) { return (unsigned)((uint64_t)prefix_of(text) * 133201u % kPrefixes); }

// The rank of the next word.
static inline unsigned word_drawn(uint64_t *state) {
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    const unsigned random = (unsigned)(*state >> 33), octave = random % kOctaves;
    return (1u << octave) + ((random / kOctaves) & ((1u << octave) - 1));
}
