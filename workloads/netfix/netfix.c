// SPDX-License-Identifier: BSD-3-Clause
// netfix [route|memory|inode|dentry|accept]: a stress test of what one fix of the MOSBENCH paper's figure 1 changes in the
// network, with as little of the others' as the kernel's interface allows, by a process on each core. All goes over the
// loopback device, which hands packets over on the core that sent them.
//
//   accept  fix 1   a connection to one listening socket, accepted by whichever process comes first, and closed
//   route   fix 4   a short datagram that the process sends to itself; it takes and drops a reference of the route
//   memory  fix 5   a datagram of more than a page, which is charged to UDP's memory and returned to it
//   inode   fix 12  a socket made and closed
//   dentry  fix 13  the same call
//
// Every answer is checked.
#define _GNU_SOURCE
#include "../common/workload.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <sys/socket.h>

enum { kPort = 7100, kShort = 64, kLong = 5000, kBacklog = 1024 };

static Options options = {.name = "netfix", .variants = {"route", "memory", "inode", "dentry", "accept"}};
static int listener = -1;
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

static int (*once)(int s, unsigned process);

static void work(unsigned i) {
    const int s = bound(SOCK_DGRAM, i, kPort);
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
    case 'r': once = route_once; break;
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
