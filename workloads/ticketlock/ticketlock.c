// SPDX-License-Identifier: BSD-3-Clause
// ticketlock [ticket|mcs]: every thread takes one lock around a short section, again and again. `ticket` is the lock of
// Linux 2.6.35: next ticket and the one served share a word, so a release makes every waiter fetch the line again.
// `mcs` (Mellor-Crummey and Scott 1991): each waiter spins on a line of its own, the holder notifies only its successor.
// An operation is one acquisition. The hand-off is the time from just before a release to the moment when the next
// thread, another one, has the lock; it is measured with the time stamp counter, which all cores share.
#include "../common/workload.h"

static Options options = {.name = "ticketlock", .variants = {"ticket", "mcs"}};

// Alignment of the first member makes each of these a line of its own.
typedef union {
    _Alignas(kLine) struct { uint16_t served, next; } part;
    uint32_t whole;
} TicketLock;
typedef struct McsNode {
    _Alignas(kLine) struct McsNode *volatile successor;
    volatile uint64_t waits;
} McsNode;

volatile TicketLock ticket_lock;
struct { _Alignas(kLine) McsNode *tail; } mcs_lock;
static McsNode mcs_nodes[kMaxCores];
// What the lock protects.
volatile struct {
    _Alignas(kLine) uint64_t count;
    uint64_t released_at;
    unsigned holder;
} section;
static struct { _Alignas(kLine) uint64_t done, handoffs, cycles; } own[kMaxCores];

#define SEPARATE __attribute__((noinline, noclone)) static

SEPARATE void ticket_acquire(unsigned i) {
    (void)i;
    const uint16_t mine = (uint16_t)(__atomic_fetch_add(&ticket_lock.whole, 1u << 16, __ATOMIC_ACQUIRE) >> 16);
    unsigned spins = 0;
    while (ticket_lock.part.served != mine)
        wait_a_little(&spins);
}
SEPARATE void ticket_release(unsigned i) {
    (void)i;
    __atomic_store_n(&ticket_lock.part.served, (uint16_t)(ticket_lock.part.served + 1), __ATOMIC_RELEASE);
}

SEPARATE void mcs_acquire(unsigned i) {
    McsNode *me = &mcs_nodes[i];
    me->successor = NULL;
    me->waits = 1;
    McsNode *before = __atomic_exchange_n(&mcs_lock.tail, me, __ATOMIC_ACQ_REL);
    if (!before)
        return;
    before->successor = me;
    unsigned spins = 0;
    while (me->waits)
        wait_a_little(&spins);
}
SEPARATE void mcs_release(unsigned i) {
    McsNode *me = &mcs_nodes[i], *expected = me;
    unsigned spins = 0;
    if (!me->successor && __atomic_compare_exchange_n(&mcs_lock.tail, &expected, NULL, 0, __ATOMIC_RELEASE, __ATOMIC_RELAXED))
        return;
    while (!me->successor)
        wait_a_little(&spins);
    __atomic_store_n(&me->successor->waits, 0, __ATOMIC_RELEASE);
}

static void work(unsigned i) {
    const int mcs = !strcmp(options.variant, "mcs");
    uint64_t n = 0;
    for (; goes_on(&options, n); ++n) {
        mcs ? mcs_acquire(i) : ticket_acquire(i);
        const uint64_t now = cycles(), then = section.released_at;
        if (section.count && section.holder != i) {
            own[i].cycles += now - then;
            ++own[i].handoffs;
        }
        section.count += 1;
        section.holder = i;
        section.released_at = cycles();
        mcs ? mcs_release(i) : ticket_release(i);
        operation_done();
    }
    own[i].done = n;
}

int main(int argc, char **argv) {
    options_read(&options, argc, argv, NULL, 0);
    run_threads(&options, work);
    uint64_t total = 0, handoffs = 0, sum = 0;
    for (unsigned i = 0; i < options.cores; ++i) {
        total += own[i].done;
        handoffs += own[i].handoffs;
        sum += own[i].cycles;
    }
    const int right = total == section.count;
    printf("moscope: ticketlock operations=%llu handoffs=%llu handoff_cycles=%.1f verify=%s\n", (unsigned long long)total,
           (unsigned long long)handoffs, handoffs ? (double)sum / (double)handoffs : 0.0, right ? "ok" : "wrong");
    return !right;
}
