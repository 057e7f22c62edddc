// SPDX-License-Identifier: BSD-3-Clause
// Who holds a TCP port, under storm, one process per core: a port is busy while its listener, a connection that the
// listener accepted, or a TIME_WAIT socket of one is there, and free afterwards. Connections are made on other cores
// than those that close them. Then all processes open and close listeners of one port, while others connect to it.
// Says "ports right" if so, and a line per fault if not.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { CONNECTIONS = 6, ROUNDS = 6, CROWD_ROUNDS = 30, COMMON = 7200, OWN = 7300 };

static int worker, cores;
static const char* volatile waits_for = "the others";

static void stuck(int signal) {
    (void)signal;
    printf("ports fault: waits for ever for %s: worker %d\n", waits_for, worker);
    fflush(stdout);
    _exit(1);
}

static int fault(const char* what, int port) {
    printf("ports fault: %s: worker %d, port %d: errno %d\n", what, worker, port, errno);
    fflush(stdout);
    return 1;
}

static void move_to(int core) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(core % cores, &set);
    if (sched_setaffinity(0, sizeof set, &set)) perror("sched_setaffinity"), exit(1);
}

static struct sockaddr_in address(in_addr_t host, int port) {
    return (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(host)};
}

static int opened(int flags) {
    int s = socket(AF_INET, SOCK_STREAM | flags, 0);
    if (s < 0) perror("socket"), exit(1);
    return s;
}

/// A socket bound to the port on all addresses, or -1. `option`: SO_REUSEADDR, SO_REUSEPORT or 0.
static int bound(int port, int option) {
    struct sockaddr_in any = address(INADDR_ANY, port);
    int s = opened(0), on = 1;
    if (option) setsockopt(s, SOL_SOCKET, option, &on, sizeof on);
    if (!bind(s, (struct sockaddr*)&any, sizeof any)) return s;
    int why = errno;
    close(s);
    errno = why;
    return -1;
}

static int listening(int port, int option, int backlog) {
    int s = bound(port, option);
    if (s >= 0 && listen(s, backlog)) close(s), s = -1;
    return s;
}

/// -1 if there is no listener. With SOCK_NONBLOCK, it may still be under way.
static int connected(int port, int flags) {
    struct sockaddr_in to = address(INADDR_LOOPBACK, port);
    int s = opened(flags);
    if (!connect(s, (struct sockaddr*)&to, sizeof to) || errno == EINPROGRESS) return s;
    close(s);
    return -1;
}

/// Closes without TIME_WAIT.
static void reset(int s) {
    struct linger now = {.l_onoff = 1};
    setsockopt(s, SOL_SOCKET, SO_LINGER, &now, sizeof now);
    close(s);
}

/// Binding lets the kernel look at all who hold the port.
static int busy(const char* what, int port) {
    int s = bound(port, 0);
    if (s < 0 && errno == EADDRINUSE) return 0;
    if (s >= 0) close(s);
    return fault(what, port);
}

/// Within five seconds: the packets that reset a connection may wait for a thread of the kernel.
static int free_again(const char* what, int port) {
    int s;
    for (int tries = 0; (s = bound(port, 0)) < 0 && tries < 5000; tries++) usleep(1000);
    if (s < 0) return fault(what, port);
    close(s);
    return 0;
}

/// How the server closes half of the connections: after the client; first, so that a TIME_WAIT socket stays for a minute;
/// first, and the client never, so that one stays for a second.
enum Closing { AFTER, FIRST, ALONE };

/// Unless `seen`, nothing looks at the port's connections before all that is done to them is done.
static int held(int port, enum Closing closing, int seen) {
    int client[CONNECTIONS], server[CONNECTIONS], faults = 0, second = 1;
    int listener = listening(port, SO_REUSEADDR, CONNECTIONS);
    if (listener < 0) return fault("no listener", port);
    if (closing == ALONE) setsockopt(listener, IPPROTO_TCP, TCP_LINGER2, &second, sizeof second);
    for (int i = 0; i < CONNECTIONS; i++) {
        move_to(worker + i);  // loopback handles the packets of a connection where they are sent
        waits_for = "a connection";
        client[i] = connected(port, 0);
        waits_for = "a connection to be accepted";
        server[i] = accept(listener, NULL, NULL);
        if (client[i] < 0 || server[i] < 0) return fault("no connection", port);
    }
    move_to(worker + 1);
    if (seen) faults += busy("free beside a listener", port);
    for (int i = 0; closing != AFTER && i < CONNECTIONS; i += 2) {
        close(server[i]);
        if (closing == FIRST) close(client[i]), client[i] = -1;
        server[i] = -1;
    }
    move_to(worker + 2);
    close(listener);
    if (seen) faults += busy("free beside connections", port);
    int next = listening(port, SO_REUSEADDR, 1);  // as a server that is started again
    if (next < 0) faults += fault("no second listener", port);
    waits_for = "a connection to the second listener";
    int again = connected(port, 0);
    waits_for = "nothing";
    if (again < 0) faults += fault("no connection to the second listener", port);
    if (closing == ALONE) usleep(1300000);
    for (int i = 0; i < CONNECTIONS; i++) {
        move_to(worker + 2 * i);
        if (client[i] >= 0) reset(client[i]);
        if (server[i] >= 0) close(server[i]);
    }
    if (again >= 0) reset(again);
    if (next >= 0) close(next);
    return faults + (closing == FIRST ? busy("free beside TIME_WAIT", port) : free_again("busy for ever", port));
}

/// Whether a connection comes to this listener, to another process's, or is reset as its listener closes, is open. On
/// the second port, servers close first, so that TIME_WAIT sockets stay.
static int crowd(void) {
    for (int round = 0; round < CROWD_ROUNDS; round++) {
        int port = COMMON + (round & 1), client[CONNECTIONS], server;
        int listener = listening(port, SO_REUSEPORT, CONNECTIONS);
        if (listener < 0 || fcntl(listener, F_SETFL, O_NONBLOCK)) return fault("no listener among others", port);
        for (int i = 0; i < CONNECTIONS; i++) client[i] = connected(port, SOCK_NONBLOCK);
        for (int i = 0; i < CONNECTIONS / 2 && (server = accept(listener, NULL, NULL)) >= 0; i++) {
            if (port == COMMON) reset(server);
            else close(server);
        }
        close(listener);
        for (int i = 0; i < CONNECTIONS; i++) {
            if (client[i] >= 0) reset(client[i]);
        }
    }
    return 0;
}

/// All begin together.
static int of_all(int (*work)(void)) {
    int faults = 0, status, gate[2];
    char none;
    if (pipe(gate)) perror("pipe"), exit(1);
    for (worker = 0; worker < cores; worker++) {
        if (fork()) continue;
        close(gate[1]);
        signal(SIGALRM, stuck);
        alarm(100);
        move_to(worker);
        exit(read(gate[0], &none, 1) || work());
    }
    close(gate[0]), close(gate[1]);
    for (int i = 0; i < cores; i++) {
        if (wait(&status) < 0 || !WIFEXITED(status) || WEXITSTATUS(status)) faults++;
    }
    return faults;
}

static int own_ports(void) {
    int faults = 0, port = OWN + 4 * worker;
    for (int round = 0; round < ROUNDS; round++) faults += held(port, AFTER, round & 1);
    for (int seen = 0; seen < 2; seen++) faults += held(port, ALONE, seen) + held(port + 1 + seen, FIRST, seen);
    return faults;
}

int main(void) {
    cores = sysconf(_SC_NPROCESSORS_ONLN);
    int faults = of_all(own_ports) + of_all(crowd) + free_again("common port busy for ever", COMMON);
    printf(faults ? "ports wrong\n" : "ports right\n");
    return faults != 0;
}
