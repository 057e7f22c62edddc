// SPDX-License-Identifier: BSD-3-Clause
// chase --size SIZE --node N [--chains K]: loads each of which needs the one before, over all lines of a buffer in random order, from
// the first core. Pages of 2 MiB where the kernel has them, from memory of node N. An operation is 256 loads. Before the
// region nothing but the chain's making has touched the buffer; inside it the chase first goes through `--warm` times,
// then `--operations` batches are measured one by one. With K chains, each instruction of a chain is followed by one of each
// other, and a batch is 256 loads of each; the chains begin at equal distances of the one cycle.
#define _GNU_SOURCE
#include "../common/workload.h"

#include <sys/mman.h>
#include <sys/syscall.h>

enum { kBatch = 256, kMostBatches = 1 << 16, kMostChains = 12 };
static const uint64_t kHugePage = 2 << 20;
static const int kBind = 2; // MPOL_BIND; set_mempolicy(2) gives the numbers, libnuma is not needed for one call

static Options options = {.name = "chase", .cores = 1, .variants = {"random"}};
static uint32_t measured[kMostBatches];

static uint64_t random_below(uint64_t n) {
    static uint64_t s = 88172645463325252ull; // xorshift64: the same chain in every run
    s ^= s << 13;
    s ^= s >> 7;
    s ^= s << 17;
    return s % n;
}

static char *allocate(uint64_t bytes, unsigned long node) {
    const uint64_t whole = (bytes + kHugePage - 1) & -kHugePage;
    char *raw = mmap(NULL, whole + kHugePage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (raw == MAP_FAILED) {
        perror("chase: mmap");
        exit(2);
    }
    char *buffer = (char *)(((uintptr_t)raw + kHugePage - 1) & -kHugePage);
    madvise(buffer, whole, MADV_HUGEPAGE);
    unsigned long nodes = 1ul << node;
    if (syscall(SYS_mbind, buffer, whole, kBind, &nodes, 64ul, 0u) && node) {
        fprintf(stderr, "chase: --node: \"%lu\": there is no such node\n", node);
        exit(2);
    }
    for (uint64_t i = 0; i < whole; i += 4096)
        buffer[i] = 0;
    return buffer;
}

// How many KiB of the buffer lie in pages of 2 MiB.
static uint64_t huge_kib(const char *buffer) {
    FILE *f = fopen("/proc/self/smaps", "r");
    char line[256];
    uint64_t found = 0;
    int here = 0;
    while (f && fgets(line, sizeof line, f)) {
        unsigned long from, to, kib;
        if (sscanf(line, "%lx-%lx ", &from, &to) == 2)
            here = from <= (uintptr_t)buffer && (uintptr_t)buffer < to;
        else if (here && sscanf(line, "AnonHugePages: %lu kB", &kib) == 1)
            found = kib;
    }
    if (f)
        fclose(f);
    return found;
}

// One cycle through all lines (Sattolo), so that no order of addresses can be foreseen.
static void make_chain(char *buffer, uint64_t lines) {
    uint32_t *order = malloc(lines * sizeof *order);
    for (uint64_t i = 0; i < lines; ++i)
        order[i] = (uint32_t)i;
    for (uint64_t i = lines - 1; i > 0; --i) {
        const uint64_t j = random_below(i);
        const uint32_t t = order[i];
        order[i] = order[j];
        order[j] = t;
    }
    for (uint64_t i = 0; i < lines; ++i)
        *(char **)(buffer + i * kLine) = buffer + (uint64_t)order[i] * kLine;
    free(order);
}

__attribute__((noinline, noclone)) static void *chase_batch(void *p) {
#define LOAD "mov (%0), %0\n\t"
#define LOADS8 LOAD LOAD LOAD LOAD LOAD LOAD LOAD LOAD
#define LOADS64 LOADS8 LOADS8 LOADS8 LOADS8 LOADS8 LOADS8 LOADS8 LOADS8
    __asm__ volatile(LOADS64 LOADS64 LOADS64 LOADS64 : "+r"(p) : : "memory");
    return p;
}

#define OF(n) "mov (%" #n "), %" #n "\n\t"
#define TIMES32(x) x x x x x x x x x x x x x x x x x x x x x x x x x x x x x x x x
#define P(n) "+r"(p[n])
#define CHAINS(k, loads, ...)                                                              \
    case k:                                                                                \
        for (unsigned i = 0; i < kBatch / 32; ++i)                                         \
            __asm__ volatile(TIMES32(loads) : __VA_ARGS__ : : "memory");                   \
        break;

__attribute__((noinline, noclone)) static void chase_side_by_side(unsigned chains, void **to) {
    void *p[kMostChains];
    memcpy(p, to, sizeof p);
    switch (chains) {
        CHAINS(2, OF(0) OF(1), P(0), P(1))
        CHAINS(3, OF(0) OF(1) OF(2), P(0), P(1), P(2))
        CHAINS(4, OF(0) OF(1) OF(2) OF(3), P(0), P(1), P(2), P(3))
        CHAINS(5, OF(0) OF(1) OF(2) OF(3) OF(4), P(0), P(1), P(2), P(3), P(4))
        CHAINS(6, OF(0) OF(1) OF(2) OF(3) OF(4) OF(5), P(0), P(1), P(2), P(3), P(4), P(5))
        CHAINS(7, OF(0) OF(1) OF(2) OF(3) OF(4) OF(5) OF(6), P(0), P(1), P(2), P(3), P(4), P(5), P(6))
        CHAINS(8, OF(0) OF(1) OF(2) OF(3) OF(4) OF(5) OF(6) OF(7), P(0), P(1), P(2), P(3), P(4), P(5), P(6), P(7))
        CHAINS(9, OF(0) OF(1) OF(2) OF(3) OF(4) OF(5) OF(6) OF(7) OF(8), P(0), P(1), P(2), P(3), P(4), P(5), P(6), P(7), P(8))
        CHAINS(10, OF(0) OF(1) OF(2) OF(3) OF(4) OF(5) OF(6) OF(7) OF(8) OF(9), P(0), P(1), P(2), P(3), P(4), P(5), P(6), P(7),
               P(8), P(9))
        CHAINS(11, OF(0) OF(1) OF(2) OF(3) OF(4) OF(5) OF(6) OF(7) OF(8) OF(9) OF(10), P(0), P(1), P(2), P(3), P(4), P(5), P(6),
               P(7), P(8), P(9), P(10))
        CHAINS(12, OF(0) OF(1) OF(2) OF(3) OF(4) OF(5) OF(6) OF(7) OF(8) OF(9) OF(10) OF(11), P(0), P(1), P(2), P(3), P(4),
               P(5), P(6), P(7), P(8), P(9), P(10), P(11))
    default: p[0] = chase_batch(p[0]);
    }
    memcpy(to, p, sizeof p);
}

/// The pointer of a single chain stays in its register: copies would count as its loads.
static inline void chase_all(unsigned chains, void **p) {
    if (chains == 1)
        *p = chase_batch(*p);
    else
        chase_side_by_side(chains, p);
}

static int by_size(const void *a, const void *b) {
    return *(const uint32_t *)a < *(const uint32_t *)b ? -1 : *(const uint32_t *)a > *(const uint32_t *)b;
}

int main(int argc, char **argv) {
    const char *size_text = "32KiB", *node_text = "0", *warm_text = "1", *chains_text = "1";
    const Extra extras[] = {{"size", &size_text}, {"node", &node_text}, {"warm", &warm_text}, {"chains", &chains_text}};
    options_read(&options, argc, argv, extras, 4);
    const uint64_t size = size_of_text("--size", size_text), lines = size / kLine;
    const uint64_t node = number_of_text("chase", "--node", node_text, 0, 63);
    const uint64_t warm = number_of_text("chase", "--warm", warm_text, 0, 1000000);
    const unsigned chains = (unsigned)number_of_text("chase", "--chains", chains_text, 1, kMostChains);
    if (lines < 2) {
        fprintf(stderr, "chase: --size: \"%s\": at least 128 bytes would be right\n", size_text);
        return 2;
    }
    pin(0);
    char *buffer = allocate(size, node);
    make_chain(buffer, lines);
    stop_on_signals(&options);
    printf("moscope: chase variant=%s size=%llu node=%llu huge_kib=%llu\n", options.variant, (unsigned long long)size,
           (unsigned long long)node, (unsigned long long)huge_kib(buffer));
    memset(measured, 0, sizeof measured); // its pages are there before they are written in the region
    void *begin[kMostChains] = {buffer}, *p[kMostChains];
    for (unsigned i = 1; i < chains; ++i) {
        begin[i] = begin[i - 1];
        for (uint64_t k = 0; k < lines / chains; ++k)
            begin[i] = *(void **)begin[i];
    }
    memcpy(p, begin, sizeof p);
    uint64_t n = 0, loads = 0, sum = 0;
    region_begin();
    for (uint64_t i = 0; i < (warm * lines + kBatch - 1) / kBatch && !stopped; ++i, loads += kBatch)
        chase_all(chains, p);
    uint64_t overhead = UINT64_MAX; // of reading the counter; the first tries pay for the way there
    for (unsigned i = 0; i < 8; ++i) {
        const uint64_t t = cycles(), took = cycles() - t;
        overhead = took < overhead ? took : overhead;
    }
    for (; goes_on(&options, n); ++n) {
        const uint64_t t = cycles();
        chase_all(chains, p);
        const uint64_t took = cycles() - t - overhead;
        measured[n % kMostBatches] = (uint32_t)took;
        sum += took;
        operation_done();
    }
    if (!stopped)
        region_end();
    loads += n * kBatch;
    // The chain is a cycle: going on for what is missing to whole rounds leads back to its beginning.
    int right = n != 0;
    for (unsigned k = 0; k < chains; ++k) {
        for (uint64_t i = loads % lines; i % lines; ++i)
            p[k] = *(void **)p[k];
        right &= p[k] == begin[k];
    }
    const uint64_t kept = n < kMostBatches ? n : kMostBatches;
    qsort(measured, kept, sizeof *measured, by_size);
    const double mean = n ? (double)sum / (double)(n * kBatch * chains) : 0;
    printf("moscope: chase operations=%llu cycles_per_load=%.2f median=%.2f verify=%s\n", (unsigned long long)n, mean,
           kept ? (double)measured[kept / 2] / kBatch / chains : 0.0, right ? "ok" : "wrong");
    return !right;
}
