// SPDX-License-Identifier: BSD-3-Clause
// What all workloads share: marking regions and operations for the simulator, pinning, options, stopping, results.
// Workloads are plain Linux programs: `--simulated` (or MOSCOPE in the environment) makes them execute gem5's
// pseudo-instructions, which a real processor does not know. Results are lines `moscope: NAME key=value ...`.
//
// The course of every workload: set up; bring all threads or processes to work; `region_begin` once; operations, each
// reported by `operation_done`, until SIGINT, SIGTERM, `--seconds` or `--operations`; `region_end` if it ended by itself;
// check the result; print it. The exit status is 0 if the check holds, 1 if not, 2 for bad options.
#pragma once

#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { kLine = 64, kMaxCores = 1024 };

// --- the simulator ---------------------------------------------------------------------------------------------------

extern int simulated;

// m5ops: 0F 04 and the function in 16 bits; arguments as in a call, the result in RAX (gem5, util/m5).
#define M5OP(name, function)                                                                                           \
    static inline void name(uint64_t work, uint64_t thread) {                                                          \
        __asm__ volatile(".byte 0x0f, 0x04, " function ", 0x00" : "+D"(work), "+S"(thread) : : "rax", "rdx", "rcx",    \
                         "r8", "r9", "r10", "r11", "memory");                                                          \
    }
M5OP(m5_work_begin, "0x5a")
M5OP(m5_work_end, "0x5b")

// Work item 0 is the region of interest, item 1 an operation of the workload.
static inline void region_begin(void) {
    if (simulated)
        m5_work_begin(0, 0);
}
static inline void region_end(void) {
    if (simulated)
        m5_work_end(0, 0);
}
static inline void operation_done(void) {
    if (__builtin_expect(simulated, 1))
        m5_work_end(1, 0);
}

// --- the processor ---------------------------------------------------------------------------------------------------

static inline uint64_t cycles(void) {
    uint32_t low, high;
    __asm__ volatile("lfence; rdtsc; lfence" : "=a"(low), "=d"(high) : : "memory");
    return (uint64_t)high << 32 | low;
}
static inline void pause_briefly(void) { __asm__ volatile("pause" : : : "memory"); }

// --- options, stopping, threads (workload.c) -------------------------------------------------------------------------

typedef struct {
    const char *name;       // of the workload
    const char *variant;    // one of `variants`, the first by default
    unsigned cores;         // --cores: threads, each pinned to a core of its own while there are enough
    uint64_t operations;    // --operations: for each thread; 0: until stopped
    unsigned seconds;       // --seconds: until then; 0: until stopped
    const char *variants[8];
    void (*prepare)(unsigned i); // if set: each thread or process calls it on its core before the region begins
} Options;

// A further option of one workload, `--NAME VALUE`.
typedef struct {
    const char *name;
    const char **value;
} Extra;

// Reads the command line; ends the program with status 2 and one line on what is expected.
void options_read(Options *, int argc, char **argv, const Extra *extras, unsigned count);
// The value of a further option. The program `name` ends in the same way if `text` is no such number.
uint64_t number_of_text(const char *name, const char *option, const char *text, uint64_t least, uint64_t most);
// A size such as 64KiB, 4MiB, or a plain number of bytes.
uint64_t size_of_text(const char *option, const char *text);

// Set by SIGINT, SIGTERM and the end of --seconds, once `stop_on_signals` was called.
// A workload of several processes names a flag in memory that they share, which is set too.
extern volatile sig_atomic_t stopped;
extern volatile int *stopped_for_all;
void stop_on_signals(const Options *);

// Cores that this process may use; `pin` puts the calling thread on one, counted from 0 and beginning again.
unsigned cores_allowed(void);
void pin(unsigned core);
// More threads than cores: those that wait should give theirs away.
extern int crowded;
// `*spins` is 0 at first. A loop reads `crowded` once, so that it polls no line but the one that it waits for.
static inline void wait_a_little(unsigned *spins) {
    pause_briefly();
    if (*spins == 0)
        *spins = crowded ? 2 : 1;
    if (*spins != 1 && ++*spins % 256 == 0) {
        *spins = 2;
        sched_yield();
    }
}

// Runs `work(i)` on threads 0 to cores-1, pinned. All of them are there before `region_begin`, which the first calls;
// after the last one has returned `region_end` is called if the workload ended by itself.
void run_threads(const Options *, void (*work)(unsigned thread));

// The same with processes, each forked by this one, pinned, with files and a current directory of its own; whether all ended
// well. What they have in common is the kernel's, and memory from `shared_memory`, which is zero at first. (processes.c)
void *shared_memory(size_t size);
int run_processes(const Options *, void (*work)(unsigned process));
// In the work of a thread or process: whether operation number `done` (from 0) is still to be done.
static inline int goes_on(const Options *o, uint64_t done) { return !stopped && (!o->operations || done < o->operations); }
