// SPDX-License-Identifier: BSD-3-Clause
// The compiler's driver, the compiler, the assembler and the linker. Each executes this program anew and ends.
#define _GNU_SOURCE
#include "gmake.h"
#include "mix.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>

static _Noreturn void fail(const char *what) {
    fprintf(stderr, "gmake: %s: %s\n", what, strerror(errno));
    _exit(1);
}

static unsigned part(unsigned of) { return (of + kScale / 2) / kScale; }

static unsigned read_all(const char *path, char *into, unsigned room) {
    struct stat s;
    const int f = open(path, O_RDONLY);
    if (f < 0 || fstat(f, &s))
        fail(path);
    const ssize_t got = read(f, into, room);
    if (got != s.st_size || close(f))
        fail(path);
    return (unsigned)got;
}

// Names that do not exist, those that do, files read and memory mapped, as often as the trace says; `opened` it has done itself.
static void ask(const Mix *mix, unsigned opened) {
    static char text[kMostText];
    struct stat s;
    char path[kPath];
    for (unsigned i = opened; i < part(mix->opens); ++i) {
        snprintf(path, sizeof path, "include/h%u.h", i % kHeaders);
        read_all(path, text, sizeof text);
    }
    for (unsigned i = 0; i < part(mix->missing); ++i) {
        snprintf(path, sizeof path, "include/missing/x86_64-linux-gnu/%u.h", i);
        if (!stat(path, &s))
            fail(path);
    }
    for (unsigned i = 0; i < part(mix->stats); ++i) {
        snprintf(path, sizeof path, "include/h%u.h", i % kHeaders);
        if (stat(path, &s))
            fail(path);
    }
    for (unsigned i = 0; i < part(mix->maps); ++i) {
        void *const at = mmap(NULL, 4 * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (at == MAP_FAILED || munmap(at, 4 * kPage))
            fail("mmap");
    }
}

// Pages that the processes have anyway are few, so all faults of the trace are of memory.
static size_t words_of(const Mix *mix) { return (size_t)part(mix->faults) * kPage / sizeof(uint64_t); }

// Memory from the heap, touched page by page.
static uint64_t *heap(const Mix *mix) {
    const size_t size = words_of(mix) * sizeof(uint64_t), step = (size / (part(mix->brks) + 1) + kPage) & ~(size_t)(kPage - 1);
    char *const at = sbrk(0);
    for (size_t got = 0; got < size; got += step)
        if (sbrk((intptr_t)step) == (void *)-1)
            fail("sbrk");
    for (size_t i = 0; i < size; i += kPage)
        at[i] = (char)i;
    return (uint64_t *)(((uintptr_t)at + 7) & ~(uintptr_t)7);
}

static size_t below(size_t most, uint64_t random) { return (size_t)((random >> 32) * most >> 32); }

// A compiler's computing: it walks structures that it has made, most of them lately, and decides by what it finds. At the end
// of each of `parts` equal parts, an operation is done.
static uint64_t compute(uint64_t *memory, size_t words, unsigned all, unsigned parts) {
    const char *const percent = getenv(kComputing);
    const unsigned steps = percent ? all / 100 * (unsigned)atoi(percent) : all;
    uint64_t state = 88172645463325252u;
    const size_t recent = words < kRecent ? words : kRecent;
    size_t base = 0;
    uint64_t done = 1, end = parts ? steps / parts : 0; // of a part
    for (unsigned i = 0; i < steps; ++i) {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        if (i % 4096 == 0)
            base = base + 2 * recent < words ? base + recent / 4 : 0;
        uint64_t *const node = memory + (state % 64 ? base + below(recent, state) : below(words, state));
        if (*node & 1)
            *node = *node * 5 + state;
        else if (*node & 6)
            *node += i;
        else
            *node ^= state >> 3;
        if (i + 1 == end) {
            operation_done();
            end = done < parts ? ++done * steps / parts : 0;
        }
    }
    return state;
}

static void write_value(const char *path, uint64_t value, unsigned size) {
    static char out[kMostText];
    const int f = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644);
    memset(out, '.', sizeof out);
    snprintf(out, kNumbers, "%llu", (unsigned long long)value);
    for (unsigned done = 0; f >= 0 && done < size; done += kPage)
        if (write(f, out + done, size - done < kPage ? size - done : kPage) < 0)
            fail(path);
    if (f < 0 || close(f))
        fail(path);
}

static void compile(unsigned source) {
    static char text[kMostText];
    char path[kPath];
    struct stat s;
    snprintf(path, sizeof path, "f%u.c", source);
    uint64_t value = mixed(source, text, read_all(path, text, sizeof text));
    for (unsigned i = 0; i < kIncluded; ++i) {
        snprintf(path, sizeof path, "h%u.h", header_of(source, i)); // beside the source first
        if (!stat(path, &s))
            fail(path);
        snprintf(path, sizeof path, "include/h%u.h", header_of(source, i));
        value = mixed(value, text, read_all(path, text, sizeof text));
    }
    ask(&kCompiler, kIncluded + 1);
    uint64_t *const memory = heap(&kCompiler);
    compute(memory, words_of(&kCompiler), kCompilerSteps / kParts * parts_of(source), parts_of(source) - 1);
    snprintf(path, sizeof path, "f%u.s", source);
    write_value(path, value, kObjectBytes);
}

static void assemble(unsigned source) {
    static char text[kMostText];
    char path[kPath];
    snprintf(path, sizeof path, "f%u.s", source);
    read_all(path, text, sizeof text);
    ask(&kAssembler, 1);
    compute(heap(&kAssembler), words_of(&kAssembler), kAssemblerSteps, 0);
    snprintf(path, sizeof path, "f%u.o", source);
    write_value(path, strtoull(text, NULL, 10), kObjectBytes);
}

static void link_all(unsigned count) {
    static char text[kMostText];
    char path[kPath];
    uint64_t value = 0;
    ask(&kLinker, 0);
    for (unsigned i = 0; i < count; ++i) {
        snprintf(path, sizeof path, "f%u.o", i);
        read_all(path, text, sizeof text);
        value = mixed(value, text, strlen(text) < kNumbers ? strlen(text) : strspn(text, "0123456789"));
    }
    compute(heap(&kLinker), words_of(&kLinker), kLinkerSteps, 0);
    write_value("program", value, kObjectBytes);
}

// Runs a tool and waits for it.
static void run(const char *tool, const char *number) {
    int status;
    const pid_t child = vfork();
    if (!child) {
        execl("/proc/self/exe", "gmake", "--tool", tool, number, (char *)NULL);
        _exit(127);
    }
    if (child < 0 || waitpid(child, &status, 0) != child || status)
        fail(tool);
}

static void drive(const char *number) {
    char path[kPath];
    ask(&kDriver, 0);
    run("cc1", number);
    run("as", number);
    snprintf(path, sizeof path, "f%s.s", number);
    if (unlink(path))
        fail(path);
}

int tool_run(int argc, char **argv) {
    if (argc != 4)
        return 2;
    const unsigned number = (unsigned)atoi(argv[3]);
    simulated = getenv(kSimulated) != NULL;
    if (!strcmp(argv[2], "cc"))
        drive(argv[3]);
    else if (!strcmp(argv[2], "cc1"))
        compile(number);
    else if (!strcmp(argv[2], "as"))
        assemble(number);
    else
        link_all(number);
    return 0;
}
