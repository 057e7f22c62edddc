// SPDX-License-Identifier: BSD-3-Clause
#define _GNU_SOURCE
#include "workload.h"

#include <errno.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>

void *shared_memory(size_t size) {
    void *const at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED) {
        perror("mmap");
        exit(1);
    }
    return at;
}

typedef struct {
    _Alignas(kLine) atomic_uint arrived;
    _Alignas(kLine) atomic_uint begun;
} Meeting;

// A child's course: on its core, all there, the work.
static _Noreturn void child(const Options *o, unsigned i, void (*work)(unsigned), Meeting *meeting) {
    unsigned spins = 0;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    pin(i);
    if (o->prepare)
        o->prepare(i);
    atomic_fetch_add(&meeting->arrived, 1);
    if (i == 0) {
        while (atomic_load(&meeting->arrived) < o->cores && !stopped)
            wait_a_little(&spins);
        region_begin();
        atomic_store(&meeting->begun, 1);
    }
    while (!atomic_load(&meeting->begun) && !stopped)
        wait_a_little(&spins);
    work(i);
    _exit(0);
}

static unsigned reap(unsigned *failed) {
    unsigned ended = 0;
    for (int status; waitpid(-1, &status, WNOHANG) > 0; ++ended)
        *failed += status != 0;
    return ended;
}

int run_processes(const Options *o, void (*work)(unsigned)) {
    Meeting *const meeting = shared_memory(sizeof *meeting);
    pid_t *const pids = calloc(o->cores, sizeof *pids);
    sigset_t awaited, before;
    sigemptyset(&awaited);
    for (const int *s = (int[]){SIGCHLD, SIGINT, SIGTERM, SIGALRM, 0}; *s; ++s)
        sigaddset(&awaited, *s);
    stop_on_signals(o);
    printf("moscope: %s variant=%s processes=%u\n", o->name, o->variant ? o->variant : "none", o->cores);
    fflush(stdout);
    sigprocmask(SIG_BLOCK, &awaited, &before);
    unsigned started = 0, failed = 0;
    for (; started < o->cores; ++started) {
        pids[started] = fork();
        if (!pids[started]) {
            sigprocmask(SIG_SETMASK, &before, NULL);
            child(o, started, work, meeting);
        }
        if (pids[started] < 0) {
            perror("fork");
            ++failed;
            break;
        }
    }
    // Signals are taken one by one, so that none is lost between a look and a wait.
    for (unsigned ended = 0; ended < started; ended += reap(&failed)) {
        int signal = SIGTERM;
        if (!failed || stopped)
            sigwait(&awaited, &signal);
        if (signal == SIGCHLD || stopped)
            continue;
        stopped = 1;
        for (unsigned i = 0; i < started; ++i)
            kill(pids[i], SIGTERM);
    }
    sigprocmask(SIG_SETMASK, &before, NULL);
    if (!stopped)
        region_end();
    free(pids);
    return !failed;
}
