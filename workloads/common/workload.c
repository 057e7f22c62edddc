// SPDX-License-Identifier: BSD-3-Clause
#define _GNU_SOURCE
#include "workload.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>

int simulated, crowded;
volatile sig_atomic_t stopped;
static volatile int nobody;
volatile int *stopped_for_all = &nobody;

static _Noreturn void refuse(const char *name, const char *what, const char *given, const char *right) {
    fprintf(stderr, "%s: %s: \"%s\": %s would be right\n", name, what, given, right);
    exit(2);
}

uint64_t number_of_text(const char *name, const char *option, const char *text, uint64_t least, uint64_t most) {
    char *end, right[80];
    errno = 0;
    const unsigned long long n = strtoull(text, &end, 10);
    if (*text >= '0' && *text <= '9' && !*end && !errno && n >= least && n <= most)
        return n;
    snprintf(right, sizeof right, "a number from %llu to %llu", (unsigned long long)least, (unsigned long long)most);
    refuse(name, option, text, right);
}

uint64_t size_of_text(const char *option, const char *text) {
    char *end;
    const unsigned long long n = strtoull(text, &end, 10);
    const char *const units[] = {"", "KiB", "MiB", "GiB"};
    if (*text >= '0' && *text <= '9')
        for (unsigned i = 0; i < 4; ++i)
            if (!strcmp(end, units[i]) && n && n < 1ull << 32)
                return (uint64_t)n << (10 * i);
    refuse("moscope", option, text, "a size such as 64KiB or 4MiB");
}

void options_read(Options *o, int argc, char **argv, const Extra *extras, unsigned count) {
    o->variant = o->variants[0];
    o->cores = o->cores ? o->cores : cores_allowed();
    simulated = getenv("MOSCOPE") != NULL;
    for (int i = 1; i < argc; ++i) {
        const char *a = argv[i], *value = i + 1 < argc ? argv[i + 1] : "";
        if (!strcmp(a, "--simulated")) {
            simulated = 1;
            continue;
        }
        if (a[0] != '-') {
            const char *const *v = o->variants;
            while (*v && strcmp(*v, a))
                ++v;
            if (!*v)
                refuse(o->name, "variant", a, o->variants[0] ? o->variants[0] : "none");
            o->variant = *v;
            continue;
        }
        ++i;
        if (!strcmp(a, "--cores"))
            o->cores = (unsigned)number_of_text(o->name, a, value, 1, kMaxCores);
        else if (!strcmp(a, "--operations"))
            o->operations = number_of_text(o->name, a, value, 0, UINT64_MAX);
        else if (!strcmp(a, "--seconds"))
            o->seconds = (unsigned)number_of_text(o->name, a, value, 0, 1000000);
        else {
            unsigned e = 0;
            while (e < count && (strncmp(a, "--", 2) || strcmp(a + 2, extras[e].name)))
                ++e;
            if (e == count)
                refuse(o->name, "option", a, "--simulated, --cores, --operations or --seconds");
            if (!*value)
                refuse(o->name, a, value, "a value");
            *extras[e].value = value;
        }
    }
    crowded = o->cores > cores_allowed();
    setvbuf(stdout, NULL, _IOLBF, 0);
}

static void stop(int signal) {
    (void)signal;
    stopped = 1;
    *stopped_for_all = 1;
}

void stop_on_signals(const Options *o) {
    struct sigaction action = {.sa_handler = stop};
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGALRM, &action, NULL);
    if (o->seconds)
        alarm(o->seconds);
}

static cpu_set_t *allowed(void) {
    static cpu_set_t set;
    static int known;
    if (!known && sched_getaffinity(0, sizeof set, &set)) {
        perror("sched_getaffinity");
        exit(2);
    }
    known = 1;
    return &set;
}

unsigned cores_allowed(void) { return CPU_COUNT(allowed()); }

void pin(unsigned core) {
    unsigned left = core % cores_allowed();
    for (unsigned c = 0; c < CPU_SETSIZE; ++c)
        if (CPU_ISSET(c, allowed()) && !left--) {
            cpu_set_t one;
            CPU_ZERO(&one);
            CPU_SET(c, &one);
            if (sched_setaffinity(0, sizeof one, &one))
                perror("sched_setaffinity");
            return;
        }
}

// Two meetings of all threads: before the region and after it. They are not part of what is measured, so plain
// counters do, each on a line of its own.
static struct { _Alignas(kLine) atomic_uint n; } arrived, begun, finished;
static struct {
    const Options *options;
    void (*work)(unsigned);
} job;

static void *thread(void *number) {
    const unsigned i = (unsigned)(uintptr_t)number;
    unsigned spins = 0;
    pin(i);
    if (job.options->prepare)
        job.options->prepare(i);
    atomic_fetch_add(&arrived.n, 1);
    if (i == 0) {
        while (atomic_load(&arrived.n) < job.options->cores)
            wait_a_little(&spins);
        region_begin();
        atomic_store(&begun.n, 1);
    }
    while (!atomic_load(&begun.n))
        wait_a_little(&spins);
    job.work(i);
    if (atomic_fetch_add(&finished.n, 1) + 1 == job.options->cores && !stopped)
        region_end();
    return NULL;
}

void run_threads(const Options *o, void (*work)(unsigned)) {
    static pthread_t threads[kMaxCores];
    job.options = o;
    job.work = work;
    stop_on_signals(o);
    allowed();
    printf("moscope: %s variant=%s threads=%u\n", o->name, o->variant ? o->variant : "none", o->cores);
    for (unsigned i = 1; i < o->cores; ++i)
        if (pthread_create(&threads[i], NULL, thread, (void *)(uintptr_t)i)) {
            perror("pthread_create");
            exit(2);
        }
    thread(NULL);
    for (unsigned i = 1; i < o->cores; ++i)
        pthread_join(threads[i], NULL);
}
