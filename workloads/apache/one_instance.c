// SPDX-License-Identifier: BSD-3-Clause
// A library that the single instance of Apache 2.4 is started with (LD_PRELOAD), so that its processes contend as little as possible:
//
// - Each process that the server forks is pinned to a core, one after the other, as the MOSBENCH paper's Apache does (section 5.4). Its
//   threads then accept, with fix 1, the connections of their own core.
// - The listening socket stays out of the processes' epoll sets. With one such socket, a process waits for connections in accept and
//   never asks its set. But for each connection the kernel would notify the sets of all processes, one by one, under the lock of the
//   socket's wait queue.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <sched.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

/// Pins the process to the n-th of the cores that it may use; it goes round if there are fewer.
static void pin(int n) {
    cpu_set_t all, one;
    if (sched_getaffinity(0, sizeof all, &all) != 0 || CPU_COUNT(&all) == 0)
        return;
    n %= CPU_COUNT(&all);
    CPU_ZERO(&one);
    for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu)
        if (CPU_ISSET(cpu, &all) && n-- == 0)
            CPU_SET(cpu, &one);
    sched_setaffinity(0, sizeof one, &one);
}

pid_t fork(void) {
    static pid_t (*real)(void);
    static int forked;
    if (!real)
        real = (pid_t(*)(void))dlsym(RTLD_NEXT, "fork");
    const pid_t child = real();
    if (child == 0)
        pin(forked);
    else if (child > 0)
        ++forked;
    return child;
}

static int listens(int file) {
    int value = 0;
    socklen_t size = sizeof value;
    return getsockopt(file, SOL_SOCKET, SO_ACCEPTCONN, &value, &size) == 0 && value;
}

int epoll_ctl(int set, int operation, int file, struct epoll_event *event) {
    static int (*real)(int, int, int, struct epoll_event *);
    if (!real)
        real = (int (*)(int, int, int, struct epoll_event *))dlsym(RTLD_NEXT, "epoll_ctl");
    return operation == EPOLL_CTL_ADD && listens(file) ? 0 : real(set, operation, file, event);
}
