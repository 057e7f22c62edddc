#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# From the Debian root image: compilers, interpreters, archives, threads, self-verifying programs.
cd /tmp
export PATH=/usr/sbin:/usr/bin:/sbin:/bin
cat >sum.c <<'END'
#include <stdio.h>
#include <math.h>
int main(void) {
    double s = 0;
    unsigned long h = 5381;
    for (int i = 1; i <= 100000; i++) { s += 1.0 / i / i; h = h * 33 + (unsigned)i; }
    printf("%.12f %lu\n", s, h);
}
END
gcc -O2 sum.c -o sum && [ "$(./sum)" = "1.644924066898 $(python3 -c 'h = 5381
for i in range(1, 100001): h = (h * 33 + i) % 2**64
print(h)')" ] && echo "gcc right"
perl=$(perl -e '$s = 0; $s += $_ ** 2 for 1 .. 1000; $_ = "x" x 50; s/x(x*)/y$1/; print "$s ", length, " ", substr($_, 0, 2)')
[ "$perl" = "333833500 50 yx" ] &&
    echo "perl right"
python=$(python3 -c 'import hashlib, math, json
print(hashlib.sha512(json.dumps([math.factorial(200)] * 9).encode()).hexdigest()[:16], round(math.erf(0.5), 12))')
[ "$python" = "34b4401701807c2f 0.520499877813" ] &&
    echo "python3 right"
tar -C /usr/lib/python3 -cJf a.tar.xz . && mkdir out && tar -C out -xJf a.tar.xz && diff -r /usr/lib/python3 out && echo "tar and xz right"
cat >threads.c <<'END'
#include <pthread.h>
#include <stdio.h>
enum { N = 48, ROUNDS = 50 };
static pthread_barrier_t b;
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static long total, wrong;
static void *work(void *a) {
    (void)a;
    for (int r = 1; r <= ROUNDS; r++) {
        pthread_mutex_lock(&m);
        total++;
        pthread_mutex_unlock(&m);
        pthread_barrier_wait(&b);
        if (total != (long)r * N) wrong++;
        pthread_barrier_wait(&b);
    }
    return 0;
}
int main(void) {
    pthread_t t[N];
    pthread_barrier_init(&b, 0, N);
    for (int i = 0; i < N; i++) pthread_create(&t[i], 0, work, 0);
    for (int i = 0; i < N; i++) pthread_join(t[i], 0);
    printf("%ld %ld\n", total, wrong);
}
END
gcc -O2 -pthread threads.c -o threads && [ "$(./threads)" = "2400 0" ] && echo "48 threads right"
stress-ng --verify --quiet --timeout 300 --cpu 2 --cpu-method all --cpu-ops 90 --memcpy 1 --memcpy-ops 20 --fp-error 1 --fp-error-ops 5 \
    --qsort 1 --qsort-ops 1 --vm 1 --vm-bytes 16M --vm-ops 2000 --crypt 1 --crypt-ops 2 --matrix 1 --matrix-ops 10 \
    --atomic 2 --atomic-ops 20 --futex 2 --futex-ops 200 --pipe 1 --pipe-ops 2000 && echo "stress-ng right"
echo "end"
