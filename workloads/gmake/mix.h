// SPDX-License-Identifier: BSD-3-Clause
// What the processes of a build ask of the kernel, from a trace of the real one (trace.sh): Debian 12's make and gcc, which compile six
// sources of tree.sh in the guest. Numbers are of one process, in the mean; faults were counted on a Debian 12 without a
// simulator. The replica does a part of each, 1/kScale.
#pragma once

typedef struct {
    unsigned missing; // names looked up that do not exist
    unsigned stats;   // attributes of files
    unsigned opens;   // files opened, read and closed
    unsigned maps;    // mappings made
    unsigned brks;    // extensions of the heap
    unsigned faults;  // page faults
} Mix;

static const Mix kDriver = {.missing = 34, .stats = 35, .opens = 3, .maps = 8, .brks = 4, .faults = 107};
static const Mix kCompiler = {.missing = 262, .stats = 8, .opens = 97, .maps = 54, .brks = 26, .faults = 2158};
static const Mix kAssembler = {.missing = 3, .stats = 0, .opens = 8, .maps = 24, .brks = 5, .faults = 278};
static const Mix kLinker = {.missing = 3, .stats = 6, .opens = 9, .maps = 33, .brks = 7, .faults = 300};

enum {
    kScale = 16,
    kParts = 16, // operations of an ordinary file: windows are shorter than a build, and few files end in one
    kFileBytes = 3874, // of a source or header: what the compiler read by what it opened
    // Not from the trace.
    kFiles = 192,
    kObjectBytes = 4096,
    kMostText = 16 << 10,     // at least a file
    kRecent = 16384,          // words of memory that the compiler has used lately
    kCompilerSteps = 500000,  // of computing, which make the kernel's share on one core near the paper's
    kAssemblerSteps = 22000,
    kLinkerSteps = 100000,    // the serial stage
    kIncluded = 97 / kScale - 1, // headers of a source
};

// Operations of a file. One source in 32 takes a quarter longer: a straggler.
static inline unsigned parts_of(unsigned source) { return source % 32 == 15 ? kParts * 5 / 4 : kParts; }
