// SPDX-License-Identifier: BSD-3-Clause
// Planted: the same in the heap, where the structures of all workers are allocated together.
#include "planted.h"

struct session {
    long requests;
    long errors;
};
#ifdef MENDED
enum { APART = LINE / sizeof(struct session) };
#else
enum { APART = 1 };
#endif

static struct session *sessions;

static void work(int self) {
    struct session *own = &sessions[self * APART];
    for (long n = 0;; ++n) {
        own->requests++; // defect
        if ((n & 15) == 0)
            own->errors++;
        compute(50);
        operation_done();
    }
}

int main(int argc, char **argv) {
    sessions = aligned_alloc(LINE, MOST * APART * sizeof(struct session));
    for (int n = 0; n < MOST * APART; ++n)
        sessions[n] = (struct session){0, 0};
    return run(argc, argv, work);
}
