// SPDX-License-Identifier: BSD-3-Clause
// OpenMP: loops that are divided dynamically, a reduction and a critical section.
#include <omp.h>
#include <stdlib.h>

enum { COUNT = 1 << 16 };

static double a[COUNT], b[COUNT];

int main(int argc, char **argv) {
    omp_set_num_threads(argc > 1 ? atoi(argv[1]) : 4);
    double sum = 0;
    for (unsigned round = 0;; ++round) {
#pragma omp parallel for schedule(dynamic, 256) reduction(+ : sum)
        for (int n = 0; n < COUNT; ++n) {
            a[n] = a[n] * 0.5 + b[(n * 17) % COUNT];
            sum += a[n];
        }
#pragma omp critical
        b[round % COUNT] += sum;
    }
}
