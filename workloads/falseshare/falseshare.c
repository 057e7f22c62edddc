// SPDX-License-Identifier: BSD-3-Clause
// falseshare [packed|padded]: each thread counts in a word of its own, which no other thread reads. `packed`: the words lie
// beside each other, eight to a line; `padded`: each has a line of its own. An operation is one increment.
#include "../common/workload.h"

_Alignas(kLine) volatile uint64_t packed_counters[kMaxCores];
_Alignas(kLine) volatile uint64_t padded_counters[kMaxCores][kLine / 8];
static uint64_t done[kMaxCores][kLine / 8];

static Options options = {.name = "falseshare", .variants = {"packed", "padded"}};
static int padded;

#define SEPARATE __attribute__((noinline, noclone)) static
SEPARATE void packed_increment(unsigned i) { packed_counters[i] += 1; }
SEPARATE void padded_increment(unsigned i) { padded_counters[i][0] += 1; }

static void work(unsigned i) {
    uint64_t n = 0;
    for (; goes_on(&options, n); ++n) {
        if (padded)
            padded_increment(i);
        else
            packed_increment(i);
        operation_done();
    }
    done[i][0] = n;
}

int main(int argc, char **argv) {
    options_read(&options, argc, argv, NULL, 0);
    padded = !strcmp(options.variant, "padded");
    // Pages are there when the region begins, so that what is measured is no first touch.
    for (unsigned i = 0; i < options.cores; ++i)
        packed_counters[i] = padded_counters[i][0] = 0;
    run_threads(&options, work);
    uint64_t total = 0, wrong = 0;
    for (unsigned i = 0; i < options.cores; ++i) {
        total += done[i][0];
        wrong += done[i][0] != (padded ? padded_counters[i][0] : packed_counters[i]);
    }
    printf("moscope: falseshare operations=%llu verify=%s\n", (unsigned long long)total, wrong ? "wrong" : "ok");
    return wrong != 0;
}
