// SPDX-License-Identifier: BSD-3-Clause
// exim [--clients N] [--messages N] [--directory PATH]: mail until stopped, or so many messages of each client. Two
// clients for each core by default (the paper's 96 at 48). The directory should lie on tmpfs; it must not exist, and is removed
// at the end. An operation is a message delivered. Processes are not pinned: the kernel places them.
#define _GNU_SOURCE
#include "exim.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>

static Options options = {.name = "exim"};

// What a server of Exim's size has in memory when it forks: private pages, of which every child copies the tables and
// counts, and, when it writes some, the pages. How many is assumed. With 256 of them copying and releasing came before all else
// on 48 cores; in the published profile neither is among the first seven functions, and looking up a file's pages is.
enum { kPrivateBytes = 64 << 12 };
enum { kSilentMs = 100 }; // after so long without a first connection, look whether a client has died

static void listen_on_loopback(Server *s) {
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t size = sizeof at;
    s->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (s->listener < 0 || bind(s->listener, (struct sockaddr *)&at, size) || listen(s->listener, 1024) ||
        getsockname(s->listener, (struct sockaddr *)&at, &size))
        die("a socket on 127.0.0.1");
    s->port = ntohs(at.sin_port);
}

static pid_t start(void) {
    const pid_t p = fork();
    if (p < 0)
        die("fork");
    if (!p) { // Ctrl-C is for the first process; the others go when it goes
        signal(SIGINT, SIG_IGN);
        signal(SIGALRM, SIG_IGN);
        signal(SIGTERM, SIG_DFL);
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        signal(SIGPIPE, SIG_IGN);
    }
    return p;
}

static pid_t start_master(const Server *s, int ready) {
    const pid_t p = start();
    if (p)
        return p;
    close(ready);
    close(s->ready);
    volatile char *own = mmap(NULL, kPrivateBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (own == MAP_FAILED)
        die("mmap");
    madvise((void *)own, kPrivateBytes, MADV_NOHUGEPAGE);
    for (unsigned i = 0; i < kPrivateBytes; i += 4096)
        own[i] = 1;
    master(s);
}

static int one_has_failed(void) {
    siginfo_t who = {.si_pid = 0};
    return !waitid(P_ALL, 0, &who, WEXITED | WNOHANG | WNOWAIT) && who.si_pid && (who.si_code != CLD_EXITED || who.si_status);
}

// Until each client has had its first connection; 0 if one failed or all ended before.
static int all_at_work(const Server *s, int ready) {
    char bytes[64];
    for (unsigned n = 0; n < s->clients;) {
        struct pollfd one = {ready, POLLIN, 0};
        const int seen = poll(&one, 1, kSilentMs);
        if (!seen && one_has_failed())
            return 0;
        if (seen <= 0)
            continue;
        const ssize_t got = read(ready, bytes, sizeof bytes);
        if (got == 0 || (got < 0 && errno != EINTR))
            return 0;
        n += got > 0 ? (unsigned)got : 0;
    }
    return 1;
}

int main(int argc, char **argv) {
    const char *clients = "0", *messages = "0", *directory = "/run/exim-spool";
    const Extra extras[] = {{"clients", &clients}, {"messages", &messages}, {"directory", &directory}};
    options_read(&options, argc, argv, extras, 3);
    Server s = {.directory = directory, .clients = (unsigned)number_of_text("exim", "--clients", clients, 0, kMostClients),
                .messages = (unsigned)number_of_text("exim", "--messages", messages, 0, 1000000000)};
    s.clients = s.clients ? s.clients : 2 * options.cores;
    if (options.operations) // of all threads of the other programs; here of all clients of a core
        s.messages = (options.operations * options.cores + s.clients - 1) / s.clients;
    if (strlen(directory) > kPath - 64) {
        fprintf(stderr, "exim: --directory: \"%s\": a shorter path would be right\n", directory);
        return 2;
    }
    make_tree(&s);
    map_text(&s);
    s.shared = mmap(NULL, sizeof(Shared) + s.clients * sizeof(ClientState), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    int ready[2];
    if (s.shared == MAP_FAILED || pipe(ready))
        die("set-up");
    s.ready = ready[1];
    listen_on_loopback(&s);
    stopped_for_all = &s.shared->stop;
    stop_on_signals(&options);
    printf("moscope: exim cores=%u clients=%u\n", options.cores, s.clients);
    fflush(stdout);
    const pid_t server = start_master(&s, ready[0]);
    close(s.listener);
    pid_t *const pids = calloc(s.clients, sizeof *pids);
    for (unsigned i = 0; i < s.clients; ++i)
        if (!(pids[i] = start())) {
            close(ready[0]);
            client(&s, i);
        }
    close(ready[1]);
    const int working = all_at_work(&s, ready[0]) || stopped;
    if (!working)
        s.shared->stop = 1;
    else if (!stopped)
        region_begin();
    // Clients end by themselves after --messages; otherwise there is nothing to do but to wait to be stopped.
    unsigned failed = 0, ended = 0;
    while (ended < s.clients) {
        int status;
        const pid_t p = waitpid(-1, &status, 0);
        if (p < 0 && errno != EINTR)
            break;
        if (p <= 0)
            continue;
        if (p == server) {
            fprintf(stderr, "exim: the master ended\n");
            ++failed;
            s.shared->stop = 1;
            continue;
        }
        ++ended;
        if (status) { // one client fewer is another load: the others stop, too
            ++failed;
            s.shared->stop = 1;
        }
    }
    if (!stopped && !failed)
        region_end();
    kill(server, SIGTERM);
    waitpid(server, NULL, 0);
    uint64_t delivered = 0;
    int right = verify(&s, &delivered) && !failed && working;
    uint64_t connections = 0;
    for (unsigned i = 0; i < s.clients; ++i)
        connections += s.shared->client[i].connections;
    unmap_text(&s);
    right &= remove_tree(&s);
    printf("moscope: exim operations=%llu connections=%llu verify=%s\n", (unsigned long long)delivered,
           (unsigned long long)connections, right ? "ok" : "wrong");
    return !right;
}
