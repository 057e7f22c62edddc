// SPDX-License-Identifier: BSD-3-Clause
// The tree: sources and headers of the replica, and what a build must make of them.
#define _GNU_SOURCE
#include "gmake.h"
#include "mix.h"

#include <fcntl.h>
#include <sys/stat.h>

enum { kLineRoom = 80 };

unsigned header_of(unsigned source, unsigned place) { return (source * 7 + place * 3) % kHeaders; }

unsigned file_text(int header, unsigned number, char *into, unsigned room) {
    unsigned length = 0, line = 0;
    if (!header)
        for (unsigned i = 0; i < kIncluded; ++i)
            length += snprintf(into + length, room - length, "#include \"h%u.h\"\n", header_of(number, i));
    for (uint64_t state = number * 2654435761u + header; length < kFileBytes - kLineRoom; ++line) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        length += snprintf(into + length, room - length, "static inline unsigned f%u_%u(unsigned x) { return x * %u; }\n", number, line,
                           (unsigned)(state >> 40));
    }
    return length;
}

static void write_file(const char *path, const char *text, unsigned size) {
    const int f = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644);
    if (f < 0 || write(f, text, size) != (ssize_t)size || close(f)) {
        perror(path);
        exit(1);
    }
}

void tree_make(unsigned count) {
    static char text[kMostText];
    char path[kPath];
    mkdir("include", 0755);
    for (unsigned i = 0; i < kHeaders; ++i) {
        snprintf(path, sizeof path, "include/h%u.h", i);
        write_file(path, text, file_text(1, i, text, sizeof text));
    }
    for (unsigned i = 0; i < count; ++i) {
        snprintf(path, sizeof path, "f%u.c", i);
        write_file(path, text, file_text(0, i, text, sizeof text));
    }
}

uint64_t object_value(unsigned source) {
    static char text[kMostText];
    uint64_t value = mixed(source, text, file_text(0, source, text, sizeof text));
    for (unsigned i = 0; i < kIncluded; ++i)
        value = mixed(value, text, file_text(1, header_of(source, i), text, sizeof text));
    return value;
}

uint64_t build_value(unsigned count) {
    uint64_t value = 0;
    char number[kNumbers];
    for (unsigned i = 0; i < count; ++i) {
        const uint64_t one = object_value(i);
        value = mixed(value, number, snprintf(number, sizeof number, "%llu", (unsigned long long)one));
    }
    return value;
}
