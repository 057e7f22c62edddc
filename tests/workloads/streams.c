/* SPDX-License-Identifier: BSD-3-Clause */
/* Threads that read and write an array of their own, one access for each few lines: nothing is shared. */
#include <omp.h>
#include <stdlib.h>

enum { kBytes = 4 << 20 };

int main(int count, char **arguments) {
    omp_set_num_threads(count > 1 ? atoi(arguments[1]) : 1);
#pragma omp parallel
    {
        volatile char *array = aligned_alloc(4096, kBytes);
        for (;;) {
            int sum = 0;
            for (int i = 0; i < kBytes; i += 64)
                sum += array[i];
            for (int i = 0; i < kBytes; i += 256)
                array[i] = (char)sum;
        }
    }
}
