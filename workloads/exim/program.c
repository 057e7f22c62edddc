// SPDX-License-Identifier: BSD-3-Clause
// Exim's text is larger than this program's and comes from many files (itself, the C library, libraries for databases,
// patterns, names); here it is files of the same kind of size, mapped as a program's text is.
#define _GNU_SOURCE
#include "exim.h"

#include <fcntl.h>
#include <sys/mman.h>

enum { kPage = 4096 };

void map_text(Server *s) {
    for (unsigned i = 0; i < kLibraries; ++i) {
        char path[kPath], page[kPage];
        path_of(path, s, "lib/%u.so", i);
        const int f = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0755);
        if (f < 0)
            die(path);
        for (unsigned n = 0; n < kLibraryPages; ++n) {
            memset(page, (int)(i + n), sizeof page);
            put(f, page, sizeof page);
        }
        void *const text = mmap(NULL, kLibraryPages * kPage, PROT_READ | PROT_EXEC, MAP_PRIVATE, f, 0);
        if (text == MAP_FAILED)
            die(path);
        close(f);
        s->text[i] = text;
    }
}

void unmap_text(Server *s) {
    for (unsigned i = 0; i < kLibraries; ++i)
        munmap((void *)s->text[i], kLibraryPages * kPage);
}

void use_text(const Server *s, unsigned pages) {
    for (unsigned i = 0; i < pages; ++i) {
        const unsigned library = i % kLibraries, page = i / kLibraries % kLibraryPages;
        if (s->text[library][page * kPage] != (char)(library + page))
            die("the program's text");
    }
}
