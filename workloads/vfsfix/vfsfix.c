// SPDX-License-Identifier: BSD-3-Clause
// vfsfix [dentry|mount|lookup|table|open|seek] [--directory PATH]: a storm on what one fix of the MOSBENCH paper's figure 1
// changes, with as little of the others' as the kernel's interface allows, by a process on each core.
//
//   dentry  fix 2   the current directory's attributes: a reference of its dentry taken and dropped, no name looked up
//   mount   fix 3   the same call; it takes and drops a reference of the mount too
//   lookup  fix 6   the attributes of one name in it
//   table   fix 7   the attributes of a mounted file system's root, /run: one crossing of a mount point
//   open    fix 8   a file of the process's own opened and closed
//   seek    fix 14  lseek on one file through a descriptor of the process's own
//
// An operation is one such call, or one open and close. Every answer is checked.
#define _GNU_SOURCE
#include "../common/workload.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

enum { kFiles = 16, kSize = 4096 };

static Options options = {.name = "vfsfix", .variants = {"dentry", "mount", "lookup", "table", "open", "seek"}};
static const char *directory = "/run/vfsfix";
static struct stat here, named, mounted;
static struct Done {
    _Alignas(kLine) uint64_t done, wrong;
} *of; // by process

static _Noreturn void fail(const char *what) {
    fprintf(stderr, "vfsfix: %s: %s\n", what, strerror(errno));
    exit(1);
}

static int same(const char *path, const struct stat *as) {
    struct stat now;
    return !stat(path, &now) && now.st_ino == as->st_ino && now.st_dev == as->st_dev;
}

static int directory_once(int file, const char *own) {
    (void)file, (void)own;
    return same(".", &here);
}
static int lookup_once(int file, const char *own) {
    (void)file, (void)own;
    return same("shared", &named);
}
static int table_once(int file, const char *own) {
    (void)file, (void)own;
    return same("/run", &mounted);
}
static int open_once(int file, const char *own) {
    (void)file;
    const int f = open(own, O_RDONLY);
    return f >= 0 && !close(f);
}
static int seek_once(int file, const char *own) {
    (void)own;
    return lseek(file, 0, SEEK_END) == kSize;
}

static int (*once)(int file, const char *own);

static void work(unsigned i) {
    char own[32];
    snprintf(own, sizeof own, "own%u", i);
    const int file = open("shared/file0", O_RDONLY);
    if (file < 0)
        fail("shared/file0");
    for (; goes_on(&options, of[i].done); ++of[i].done) {
        of[i].wrong += !once(file, own);
        operation_done();
    }
    close(file);
}

static void file_of(const char *name, size_t size) {
    static const char zeros[kSize];
    const int f = open(name, O_WRONLY | O_CREAT | O_EXCL, 0644);
    if (f < 0 || write(f, zeros, size) != (ssize_t)size || close(f))
        fail(name);
}

// What all use. Directories have many names in them, as a server's have.
static void make(void) {
    char name[32];
    if (mkdir(directory, 0755) || chdir(directory) || mkdir("shared", 0755))
        fail(directory);
    for (unsigned i = 0; i < kFiles; ++i) {
        snprintf(name, sizeof name, "shared/file%u", i);
        file_of(name, kSize);
    }
    for (unsigned i = 0; i < options.cores; ++i) {
        snprintf(name, sizeof name, "own%u", i);
        file_of(name, 1);
    }
    if (stat(".", &here) || stat("shared", &named) || stat("/run", &mounted))
        fail("stat");
}

static int removed(void) {
    char name[32];
    int well = 1;
    for (unsigned i = 0; i < kFiles; ++i) {
        snprintf(name, sizeof name, "shared/file%u", i);
        well &= !unlink(name);
    }
    for (unsigned i = 0; i < options.cores; ++i) {
        snprintf(name, sizeof name, "own%u", i);
        well &= !unlink(name);
    }
    return well & !rmdir("shared") & !chdir("/") & !rmdir(directory);
}

int main(int argc, char **argv) {
    const Extra extras[] = {{"directory", &directory}};
    options_read(&options, argc, argv, extras, 1);
    switch (options.variant[0]) {
    case 'd':
    case 'm': once = directory_once; break;
    case 'l': once = lookup_once; break;
    case 't': once = table_once; break;
    case 'o': once = open_once; break;
    default: once = seek_once;
    }
    make();
    of = shared_memory(options.cores * sizeof *of);
    const int ended = run_processes(&options, work);
    uint64_t total = 0, wrong = 0;
    for (unsigned i = 0; i < options.cores; ++i) {
        total += of[i].done;
        wrong += of[i].wrong;
    }
    const int right = removed() && ended && !wrong;
    printf("moscope: vfsfix operations=%llu wrong=%llu verify=%s\n", (unsigned long long)total, (unsigned long long)wrong,
           right ? "ok" : "wrong");
    return !right;
}
