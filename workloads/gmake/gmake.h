// SPDX-License-Identifier: BSD-3-Clause
// A replica of the MOSBENCH paper's gmake: a make, a compiler's driver, the compiler, an assembler and a linker, each a
// process of its own that executes this program. They do to the kernel what the real ones do (mix.h), over a tree of sources
// and headers on tmpfs that the program generates. What each reads goes into what it writes, so that the linker's output
// depends on every byte of the tree; make knows the value.
#pragma once

#include "../common/workload.h"

#include <stdint.h>

enum { kHeaders = 64, kMostFiles = 4096, kPath = 96, kPage = 4096 };

// Of one file of the tree, from its number alone; the generator and the checks use the same.
unsigned file_text(int header, unsigned number, char *into, unsigned room); // its length
void tree_make(unsigned files);
unsigned header_of(unsigned source, unsigned place); // which header a source includes there

// In the environment of the tools: percent of their computing; whether they mark operations.
#define kComputing "GMAKE_COMPUTING"
#define kSimulated "MOSCOPE"

static inline uint64_t mixed(uint64_t value, const char *text, size_t size) {
    for (size_t i = 0; i < size; ++i)
        value = (value ^ (unsigned char)text[i]) * 1099511628211u;
    return value;
}
enum { kNumbers = 64 }; // bytes of an intermediate or an object file that hold its value, as text

uint64_t object_value(unsigned source); // what the compiler makes of it
uint64_t build_value(unsigned files);   // what the linker makes of all

// Processes (tools.c); each is the whole life of one.
int tool_run(int argc, char **argv);
