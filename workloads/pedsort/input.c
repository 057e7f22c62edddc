// SPDX-License-Identifier: BSD-3-Clause
// The input: files of pseudo-random text. Their sizes are spread as those of the source files of a kernel.
#include "pedsort.h"

uint64_t size_of_file(unsigned file) {
    // Percent of the mean. Within each dozen of files the large ones come first.
    static const unsigned char shapes[kShapes] = {220, 208, 196, 150, 110, 85, 65, 50, 40, 30, 22, 24};
    const uint64_t bytes = file_bytes * shapes[file % kShapes] / 100;
    return bytes > kWordRoom ? bytes : kWordRoom;
}

void words_of(unsigned file, void (*each)(unsigned, uint32_t, void *), void *context) {
    char text[kWordRoom];
    uint64_t state = file + 1;
    const uint64_t size = size_of_file(file);
    uint32_t position = 0;
    for (uint64_t at = 0; at + kWordRoom <= size; ++position) {
        const unsigned rank = word_drawn(&state);
        at += word_text(rank, text) + 1;
        each(rank, position, context);
    }
}

static void put(unsigned rank, uint32_t position, void *stream) {
    char text[kWordRoom];
    word_text(rank, text);
    fputs(text, stream);
    putc(position % 10 == 9 ? '\n' : ' ', stream);
}

void make_file(unsigned file) {
    char name[32];
    snprintf(name, sizeof name, "f%u", file);
    FILE *const stream = fopen(name, "wx");
    if (!stream)
        fail(name);
    words_of(file, put, stream);
    if (fclose(stream))
        fail(name);
}
