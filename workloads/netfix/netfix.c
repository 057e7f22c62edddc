// SPDX-License-Identifier: BSD-3-Clause
// netfix [route|memory|inode|dentry|accept|receive|poll]: a stress test of what one fix of the MOSBENCH paper's figure 1
// changes in the network, with as little of the others' as the kernel's interface allows, by a process on each core. All but
// `receive` and `poll` go over the loopback device, which hands packets over on the core that sent them.
//
//   accept  fix 1   a connection to one listening socket, accepted by whichever process comes first, and closed
//   route   fix 4   a short datagram that the process sends to itself; it takes and drops a reference of the route
//   memory  fix 5   a datagram of more than a page, which is charged to UDP's memory and returned to it
//   receive fix 9   datagrams through the network card to a host that returns them (docs/ethernet.md). The kernel passes
//                   them on in bunches, so that most of a core's work is to take frames from the card and to give it buffers
//   poll    fix 10  the same with one datagram at a time, so that the driver polls for each
//   inode   fix 12  a socket made and closed
//   dentry  fix 13  the same call
//
// Every answer is checked.
#define _GNU_SOURCE
#include "../common/workload.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <sys/socket.h>
#include <sys/time.h>

enum { kPort = 7100, kShort = 64, kLong = 5000, kBacklog = 1024 };
// The card gives the first of these ports to the queue of core 0, the next to that of core 1 (`fixed-port`).
enum { kCardPort = 11211, kEcho = 7, kHostNet = 0x0a010100, kHosts = 250 };
enum { kBunch = 32 }; // at most, datagrams of an operation, sent at once

static Options options = {.name = "netfix", .variants = {"route", "memory", "inode", "dentry", "accept", "receive", "poll"}};
static int listener = -1;
static unsigned bunch = kBunch;
static struct Done {
    _Alignas(kLine) uint64_t done, wrong;
} *of; // by process

static _Noreturn void fail(const char *what) {
    fprintf(stderr, "netfix: %s: %s\n", what, strerror(errno));
    exit(1);
}

// 127.0.1.0 and up: each process has an address of its own, so that they do not look for free ports in the same places.
static struct sockaddr_in address(unsigned process, unsigned port) {
    return (struct sockaddr_in){.sin_family = AF_INET,
                                .sin_port = htons((uint16_t)port),
                                .sin_addr.s_addr = htonl(INADDR_LOOPBACK + 256 + process)};
}

static int bound(int type, unsigned process, unsigned port) {
    const struct sockaddr_in own = address(process, port);
    const int s = socket(AF_INET, type, 0), on = 1;
    if (s >= 0 && !port) // connect chooses the port
        setsockopt(s, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &on, sizeof on);
    if (s < 0 || bind(s, (const struct sockaddr *)&own, sizeof own))
        return -1;
    return s;
}

static int datagram_once(int s, unsigned process, size_t size) {
    static unsigned char out[kLong], in[kLong + 1];
    const struct sockaddr_in self = address(process, kPort);
    static uint64_t count;
    ++count;
    memcpy(out, &count, sizeof count);
    memcpy(out + size - sizeof count, &count, sizeof count);
    return sendto(s, out, size, 0, (const struct sockaddr *)&self, sizeof self) == (ssize_t)size &&
           recv(s, in, sizeof in, 0) == (ssize_t)size && !memcmp(in, out, sizeof count) &&
           !memcmp(in + size - sizeof count, &count, sizeof count);
}

static int route_once(int s, unsigned process) { return datagram_once(s, process, kShort); }
static int memory_once(int s, unsigned process) { return datagram_once(s, process, kLong); }
static int socket_once(int s, unsigned process) {
    (void)s, (void)process;
    const int made = socket(AF_INET, SOCK_DGRAM, 0);
    return made >= 0 && !close(made);
}

// The client resets its connection, so that no port stays in TIME-WAIT.
static int accept_once(int s, unsigned process) {
    (void)s;
    const struct linger reset = {.l_onoff = 1};
    struct sockaddr_in to = address(kMaxCores, kPort), from;
    socklen_t size = sizeof from;
    const int client = bound(SOCK_STREAM, process, 0);
    int well = client >= 0 && !setsockopt(client, SOL_SOCKET, SO_LINGER, &reset, sizeof reset) &&
               !connect(client, (const struct sockaddr *)&to, sizeof to);
    const int server = well ? accept(listener, (struct sockaddr *)&from, &size) : -1;
    well &= server >= 0 && from.sin_family == AF_INET && ntohl(from.sin_addr.s_addr) - INADDR_LOOPBACK - 256 < options.cores;
    if (client >= 0)
        close(client);
    if (server >= 0)
        close(server);
    return well;
}

// Datagrams of kShort bytes, numbered at both ends. Host 10.1.1.1 and up: one for each process.
static int send_bunch(int s, unsigned process, uint64_t number) {
    static unsigned char out[kBunch][kShort];
    const struct sockaddr_in to = {.sin_family = AF_INET,
                                   .sin_port = htons(kEcho),
                                   .sin_addr.s_addr = htonl(kHostNet + process / kHosts * 256 + process % kHosts + 1)};
    for (unsigned i = 0; i < bunch; ++i, ++number) {
        memcpy(out[i], &number, sizeof number);
        memcpy(out[i] + kShort - sizeof number, &number, sizeof number);
    }
    return sendto(s, out, bunch * kShort, 0, (const struct sockaddr *)&to, sizeof to) == (ssize_t)bunch * kShort;
}

// A queue that is refilled takes 33 buffers in a row. Cores that wait for whole bunches refill theirs at the same times.
static int receive_once(int s, unsigned process) {
    static unsigned char in[65536];
    static uint64_t received, sent;
    if (!send_bunch(s, process, received))
        return 0;
    for (sent += bunch; received < sent;) {
        const ssize_t got = recv(s, in, sizeof in, 0);
        if (got <= 0 || got % kShort)
            return 0;
        for (const unsigned char *at = in; at < in + got; at += kShort, ++received)
            if (memcmp(at, &received, sizeof received) || memcmp(at + kShort - sizeof received, &received, sizeof received))
                return 0;
    }
    return 1;
}

// A socket whose datagrams of kShort bytes pass the kernel's upper layers in bunches, in both directions.
static int bound_to_card(unsigned process) {
    const struct sockaddr_in own = {.sin_family = AF_INET, .sin_port = htons((uint16_t)(kCardPort + process))};
    const struct timeval patience = {.tv_usec = 500000};
    const int s = socket(AF_INET, SOCK_DGRAM, 0), size = kShort, on = 1, room = 1 << 20;
    if (s < 0 || bind(s, (const struct sockaddr *)&own, sizeof own) || setsockopt(s, IPPROTO_UDP, UDP_SEGMENT, &size, sizeof size) ||
        setsockopt(s, IPPROTO_UDP, UDP_GRO, &on, sizeof on) || setsockopt(s, SOL_SOCKET, SO_RCVBUFFORCE, &room, sizeof room) ||
        setsockopt(s, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience))
        return -1;
    return s;
}

static int (*once)(int s, unsigned process);
static int card = -1; // the process's socket of `receive` and `poll`

// Finds the host, and fills the queues.
static void prepare_card(unsigned i) {
    if ((card = bound_to_card(i)) < 0 || !receive_once(card, i))
        fail("network card");
}

static void work(unsigned i) {
    const int s = card >= 0 ? card : bound(SOCK_DGRAM, i, kPort);
    if (s < 0)
        fail("bind");
    for (; goes_on(&options, of[i].done); ++of[i].done) {
        if (!once(s, i)) {
            if (stopped) // the signal ended a call that waited
                break;
            ++of[i].wrong;
        }
        operation_done();
    }
    close(s);
}

int main(int argc, char **argv) {
    options_read(&options, argc, argv, NULL, 0);
    switch (options.variant[0]) {
    case 'r':
        once = options.variant[1] == 'o' ? route_once : receive_once;
        options.prepare = once == receive_once ? prepare_card : NULL;
        break;
    case 'p':
        once = receive_once;
        options.prepare = prepare_card;
        bunch = 1;
        break;
    case 'm': once = memory_once; break;
    case 'a': once = accept_once; break;
    default: once = socket_once;
    }
    if (once == accept_once && ((listener = bound(SOCK_STREAM, kMaxCores, kPort)) < 0 || listen(listener, kBacklog)))
        fail("listen");
    of = shared_memory(options.cores * sizeof *of);
    const int ended = run_processes(&options, work);
    uint64_t total = 0, wrong = 0;
    for (unsigned i = 0; i < options.cores; ++i) {
        total += of[i].done;
        wrong += of[i].wrong;
    }
    printf("moscope: netfix operations=%llu wrong=%llu verify=%s\n", (unsigned long long)total, (unsigned long long)wrong,
           ended && !wrong ? "ok" : "wrong");
    return !(ended && !wrong);
}
