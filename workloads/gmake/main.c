// SPDX-License-Identifier: BSD-3-Clause
// make: builds the tree again and again, with at most two jobs for each core, until it is stopped or has compiled as many
// files as wanted.
#define _GNU_SOURCE
#include "gmake.h"
#include "mix.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>

static Options options = {.name = "gmake"};
static unsigned files, builds;
static uint64_t compiled, operations, wrong, expected;

static _Noreturn void fail(const char *what) {
    fprintf(stderr, "gmake: %s: %s\n", what, strerror(errno));
    exit(1);
}

// The signals that stop make are blocked in the tools, which end what they do.
static void start(char *const argv[]) {
    sigset_t stops, before;
    sigemptyset(&stops);
    for (const int *s = (int[]){SIGINT, SIGTERM, SIGALRM, 0}; *s; ++s)
        sigaddset(&stops, *s);
    sigprocmask(SIG_BLOCK, &stops, &before);
    const pid_t child = vfork();
    if (!child) {
        execv(argv[0], argv);
        _exit(127);
    }
    sigprocmask(SIG_SETMASK, &before, NULL);
    if (child < 0)
        fail("vfork");
}

static void start_tool(char *tool, unsigned number) {
    char text[16];
    snprintf(text, sizeof text, "%u", number);
    start((char *[]){"/proc/self/exe", "--tool", tool, text, NULL});
}

// One that has ended; whether it ended well.
static int reap(void) {
    int status;
    pid_t child;
    while ((child = waitpid(-1, &status, 0)) < 0 && errno == EINTR)
        ;
    return child > 0 && !status;
}

// What make does by itself: the attributes of all that it knows of.
static void look(void) {
    struct stat s;
    char path[kPath];
    for (unsigned i = 0; i < kHeaders; ++i) {
        snprintf(path, sizeof path, "include/h%u.h", i);
        wrong += stat(path, &s) != 0;
    }
    for (unsigned i = 0; i < files; ++i) {
        snprintf(path, sizeof path, "f%u.c", i);
        wrong += stat(path, &s) != 0;
        snprintf(path, sizeof path, "f%u.o", i);
        wrong += stat(path, &s) == 0; // not there yet
    }
}

static void finish(unsigned count) {
    char path[kPath], text[kNumbers + 1] = "";
    start_tool("ld", count);
    wrong += !reap();
    const int f = open("program", O_RDONLY);
    wrong += f < 0 || read(f, text, kNumbers) != kNumbers || strtoull(text, NULL, 10) != (count == files ? expected : build_value(count));
    close(f);
    for (unsigned i = 0; i < count; ++i) { // the next build begins with none
        snprintf(path, sizeof path, "f%u.o", i);
        wrong += unlink(path) != 0;
    }
    wrong += unlink("program") != 0;
    ++builds;
}

static void build(unsigned count) {
    unsigned running = 0, next = 0;
    look();
    while (next < count || running) {
        for (; next < count && running < 2 * options.cores; ++next, ++running) {
            start_tool("cc", next);
            operations += parts_of(next); // all but the last are marked by the compiler
        }
        wrong += !reap();
        --running;
        ++compiled;
        operation_done();
    }
    finish(count);
}

int main(int argc, char **argv) {
    if (argc > 1 && !strcmp(argv[1], "--tool"))
        return tool_run(argc, argv);
    const char *directory = "/run/gmake", *count = "", *percent = "100";
    const Extra extras[] = {{"directory", &directory}, {"files", &count}, {"compute", &percent}};
    options_read(&options, argc, argv, extras, sizeof extras / sizeof *extras);
    files = *count ? (unsigned)number_of_text("gmake", "--files", count, 1, kMostFiles) : kFiles;
    number_of_text("gmake", "--compute", percent, 0, 1000);
    setenv(kComputing, percent, 1); // for the tools
    if (simulated)
        setenv(kSimulated, "1", 1);
    stop_on_signals(&options);
    mkdir(directory, 0755);
    if (chdir(directory))
        fail(directory);
    tree_make(files);
    expected = build_value(files);
    // The last build is of fewer files if so many are wanted.
    const uint64_t wanted = options.operations ? options.operations * options.cores : UINT64_MAX;
    region_begin();
    do
        build(wanted - compiled < files ? (unsigned)(wanted - compiled) : files);
    while (!stopped && compiled < wanted);
    if (!stopped)
        region_end();
    printf("moscope: gmake operations=%llu compiled=%llu builds=%u files=%u wrong=%llu verify=%s\n", (unsigned long long)operations,
           (unsigned long long)compiled, builds, files, (unsigned long long)wrong, wrong ? "wrong" : "ok");
    return wrong != 0;
}
