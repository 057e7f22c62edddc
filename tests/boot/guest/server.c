// SPDX-License-Identifier: BSD-3-Clause
// A server for the `http` clients of the control host: answers each connection with the file of letters that they expect, and ends
// when they have opened as many connections as wanted and have closed all of them. Says every so often how far it is.
//   server PORT CONNECTIONS AT-A-TIME BYTES
#define _GNU_SOURCE // accept4
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

enum { kMostBytes = 100000, kEvents = 64, kFiles = 65536, kSteps = 10 };

static char answer[kMostBytes + 64];
static size_t answer_size;
static size_t sent[kFiles]; // of a connection's answer

static void fail(const char *what) {
    perror(what);
    exit(1);
}

// Asks the control host, whose datagrams the link may lose too.
static void control(const char *command, char *reply, size_t size) {
    const int s = socket(AF_INET, SOCK_DGRAM, 0);
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(7000)};
    const struct timeval patience = {.tv_usec = 500000};
    inet_pton(AF_INET, "10.1.0.2", &to.sin_addr);
    setsockopt(s, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    if (connect(s, (struct sockaddr *)&to, sizeof to))
        fail("control host");
    ssize_t got = -1;
    for (unsigned tries = 0; got <= 0 && tries < 20; ++tries) {
        if (send(s, command, strlen(command), 0) < 0)
            fail("send");
        got = recv(s, reply, size - 1, 0);
    }
    if (got <= 0)
        fail("no answer");
    reply[got] = 0;
    close(s);
}

static int listening(unsigned port) {
    const int s = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0), on = 1;
    const struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(port)};
    setsockopt(s, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (bind(s, (const struct sockaddr *)&at, sizeof at) || listen(s, 4096))
        fail("listen");
    return s;
}

static void watch(int queue, int op, int file, unsigned events) {
    struct epoll_event e = {.events = events, .data.fd = file};
    if (epoll_ctl(queue, op, file, &e))
        fail("epoll_ctl");
}

// Reads the request, writes as much of the answer as fits, and closes after its last byte. Whether it has closed.
static int serve(int queue, int file) {
    char request[4096];
    if (sent[file] == 0 && read(file, request, sizeof request) <= 0)
        return close(file), 1;
    const ssize_t put = write(file, answer + sent[file], answer_size - sent[file]);
    sent[file] += put > 0 ? put : 0;
    if (sent[file] < answer_size)
        return watch(queue, EPOLL_CTL_MOD, file, EPOLLOUT), 0;
    return close(file), 1;
}

int main(int argc, char **argv) {
    if (argc != 5 || atol(argv[2]) < kSteps || atoi(argv[4]) > kMostBytes)
        return 2;
    const unsigned port = atoi(argv[1]), at_a_time = atoi(argv[3]), bytes = atoi(argv[4]);
    const unsigned long wanted = atol(argv[2]);
    answer_size = sprintf(answer, "HTTP/1.0 200 OK\r\nContent-Length: %u\r\n\r\n", bytes);
    for (unsigned i = 0; i < bytes; ++i)
        answer[answer_size++] = 'a' + i % 26;
    const int listener = listening(port), queue = epoll_create1(0);
    watch(queue, EPOLL_CTL_ADD, listener, EPOLLIN);
    char text[512];
    snprintf(text, sizeof text, "start http connections=%u port=%u bytes=%u patience_ms=600000", at_a_time, port,
             bytes);
    control(text, text, sizeof text);
    unsigned long served = 0;
    while (served < wanted) {
        struct epoll_event events[kEvents];
        const int n = epoll_wait(queue, events, kEvents, -1);
        for (int i = 0; i < n; ++i) {
            const int file = events[i].data.fd;
            if (file != listener) {
                if (serve(queue, file) && ++served % (wanted / kSteps) == 0)
                    fprintf(stderr, "served %lu\n", served);
                continue;
            }
            for (int s; (s = accept4(listener, NULL, NULL, SOCK_NONBLOCK)) >= 0;) {
                sent[s] = 0;
                watch(queue, EPOLL_CTL_ADD, s, EPOLLIN);
            }
        }
    }
    control("report http", text, sizeof text);
    printf("%s\n", text);
    control("stop http", text, sizeof text);
    return 0;
}
