// SPDX-License-Identifier: BSD-3-Clause
// Mappings of files and of anonymous memory under storm, one process per core: what is truncated is gone from all that
// map it, what is moved to another node is found by all that share it, what is split, moved, merged, forked and left
// by its first owner keeps its bytes. Says "maps right" if so, and a line per fault if not.
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/mempolicy.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PAGES = 12, ROUNDS = 4, CHILDREN = 3, TRIES = 200 };

static long page;
static int worker;

static int fault(const char* what, int at) {
    printf("maps fault: %s: worker %d, page %d\n", what, worker, at);
    fflush(stdout);
    return 1;
}

static void* map(size_t pages, int flags, int file) {
    void* got = mmap(NULL, pages * page, PROT_READ | PROT_WRITE, flags, file, 0);
    if (got == MAP_FAILED) perror("mmap"), exit(1);
    return got;
}

/// A byte at the start of a page.
static volatile char* at(char* area, int number) { return area + number * page; }

static int ended_well(int children) {
    int faults = 0, status;
    for (int i = 0; i < children; i++) {
        if (wait(&status) < 0 || !WIFEXITED(status) || WEXITSTATUS(status)) faults++;
    }
    return faults;
}

static void meet(int file) {
    char byte;
    if (read(file, &byte, 1) < 0) exit(1);  // ends when the last writer of the pipe has closed it
}

/// A file that several map in pieces is cut to nothing and made long again: all of them read zeros. Then its name goes.
static int truncated(void) {
    char name[64];
    snprintf(name, sizeof name, "/tmp/storm/maps.%d", worker);
    int file = open(name, O_RDWR | O_CREAT | O_TRUNC, 0600);
    if (file < 0 || ftruncate(file, PAGES * page)) return fault("no file", 0);
    char* area = map(PAGES, MAP_SHARED, file);
    int ready[2], cut[2];
    if (pipe(ready) || pipe(cut)) exit(1);
    for (int child = 0; child < CHILDREN; child++) {
        if (fork()) continue;
        close(ready[0]), close(cut[1]);
        char* own = map(PAGES, child & 1 ? MAP_PRIVATE : MAP_SHARED, file);
        // Pieces: three mappings of one, and one with a hole.
        mprotect(own + 4 * page, page, PROT_READ);
        munmap(area + (5 + child) * page, page);
        int sum = 0;
        for (int i = 0; i < PAGES; i++) {
            if (i != 5 + child) *at(area, i) = 'x';
            sum += *at(own, i);
        }
        close(ready[1]);
        meet(cut[0]);
        int faults = sum ? 0 : fault("nothing was there to cut", 0);
        for (int i = 0; i < PAGES; i++) {
            if (i != 5 + child && *at(area, i)) faults += fault("there after truncation", i);
            if (*at(own, i)) faults += fault("there after truncation in another mapping", i);
        }
        _exit(faults != 0);
    }
    close(ready[1]), close(cut[0]);
    meet(ready[0]);
    if (ftruncate(file, 0) || ftruncate(file, PAGES * page) || unlink(name)) fault("not cut", 0);
    close(cut[1]);
    int faults = ended_well(CHILDREN);
    *at(area, 2) = 'u';
    if (pread(file, area, 1, 2 * page) != 1 || *area != 'u') faults += fault("not in the unlinked file", 2);
    close(ready[0]), close(file);
    munmap(area, PAGES * page);
    return faults;
}

/// Splits an area into mappings of a page, takes one page elsewhere and back, and looks at all of them.
static int kneaded(char* area, char mark) {
    int faults = 0;
    for (int i = 0; i < PAGES; i += 2) mprotect(area + i * page, page, PROT_READ);
    for (int i = 0; i < PAGES; i += 2) mprotect(area + i * page, page, PROT_READ | PROT_WRITE);
    char* away = map(PAGES, MAP_PRIVATE | MAP_ANONYMOUS, -1);
    for (int i = 3; i >= 1; i--) {
        char* to = away + (i + 4) * page;
        if (mremap(area + i * page, page, page, MREMAP_MAYMOVE | MREMAP_FIXED, to) != to) faults += fault("not moved", i);
        if (*to != mark) faults += fault("lost on the way", i);
    }
    for (int i = 1; i <= 3; i++) {
        char* to = area + i * page;
        if (mremap(away + (i + 4) * page, page, page, MREMAP_MAYMOVE | MREMAP_FIXED, to) != to) faults += fault("not moved back", i);
    }
    munmap(away, PAGES * page);
    for (int i = 0; i < PAGES; i++) {
        if (*at(area, i) != mark) faults += fault("another's bytes", i);
    }
    return faults;
}

/// A family: each child has its parent's bytes until it writes its own, also after the parent is gone.
static int inherited(void) {
    char* area = map(PAGES, MAP_PRIVATE | MAP_ANONYMOUS, -1);
    for (int i = 0; i < PAGES; i++) *at(area, i) = 'a';
    pid_t first = fork();
    if (!first) {
        for (char mark = 'a'; mark < 'd'; mark++) {
            int faults = kneaded(area, mark);
            pid_t next = fork();
            if (next) _exit(faults ? 1 : 0);  // the child lives on without it
            for (int i = 0; i < PAGES; i++) *at(area, i) = mark + 1;
        }
        _exit(kneaded(area, 'd') ? 1 : 0);
    }
    int faults = kneaded(area, 'a') + ended_well(1);
    munmap(area, PAGES * page);
    return faults;
}

/// Moves all pages of an area to a node, whoever maps them; the pages that never got there.
static int left_behind(char* area, int node) {
    void* pages[PAGES];
    int nodes[PAGES], status[PAGES], left = 0;
    for (int tries = 0; tries < TRIES; tries++) {
        left = 0;
        for (int i = 0; i < PAGES; i++) pages[i] = area + i * page, nodes[i] = node, status[i] = -1;
        if (syscall(SYS_move_pages, 0, (long)PAGES, pages, nodes, status, MPOL_MF_MOVE_ALL) < 0) return fault("move_pages", 0);
        for (int i = 0; i < PAGES; i++) left += status[i] != node;
        if (!left) break;
        sched_yield();
    }
    return left;
}

/// Pages that a family shares move to other nodes while its members knead their mappings of them.
static int moved(int nodes) {
    char* area = map(PAGES, MAP_PRIVATE | MAP_ANONYMOUS, -1);
    char* common = map(PAGES, MAP_SHARED | MAP_ANONYMOUS, -1);
    for (int i = 0; i < PAGES; i++) *at(area, i) = *at(common, i) = 'm';
    int end[2];
    if (pipe(end)) exit(1);
    for (int child = 0; child < CHILDREN; child++) {
        if (fork()) continue;
        close(end[1]);
        int faults = kneaded(area, 'm') + kneaded(common, 'm');
        meet(end[0]);
        for (int i = 0; i < PAGES; i++) {
            if (*at(area, i) != 'm' || *at(common, i) != 'm') faults += fault("not there after the move", i);
        }
        _exit(faults != 0);
    }
    close(end[0]);
    int faults = 0;
    for (int i = 1; i <= 2; i++) {
        int node = (worker + i) % nodes;
        if (left_behind(area, node)) faults += fault("did not move", node);
        if (left_behind(common, node)) faults += fault("shared memory did not move", node);
    }
    close(end[1]);
    faults += ended_well(CHILDREN);
    munmap(area, PAGES * page), munmap(common, PAGES * page);
    return faults;
}

static int nodes(void) {
    int count = 0;
    for (char name[64];; count++) {
        snprintf(name, sizeof name, "/sys/devices/system/node/node%d", count);
        if (access(name, F_OK)) return count;
    }
}

int main(void) {
    page = sysconf(_SC_PAGESIZE);
    int workers = sysconf(_SC_NPROCESSORS_ONLN), known = nodes();
    for (worker = 0; worker < workers; worker++) {
        if (fork()) continue;
        int faults = 0;
        for (int round = 0; round < ROUNDS; round++) {
            faults += truncated() + inherited();
            if (known > 1) faults += moved(known);
        }
        exit(faults != 0);
    }
    int faults = ended_well(workers);
    printf(faults ? "maps wrong\n" : "maps right\n");
    return faults != 0;
}
