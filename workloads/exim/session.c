// SPDX-License-Identifier: BSD-3-Clause
#define _GNU_SOURCE
#include "exim.h"

#include <errno.h>
#include <sys/socket.h>

// Lines from a connection; SMTP is a dialogue, so what a read gives seldom holds more than one.
typedef struct {
    int socket;
    size_t from, to;
    char bytes[1024];
} Lines;

static const char *line(Lines *l) {
    for (;;) {
        char *const begin = l->bytes + l->from, *const end = memchr(begin, '\n', l->to - l->from);
        if (end) {
            *end = 0;
            if (end > begin && end[-1] == '\r')
                end[-1] = 0;
            l->from = (size_t)(end + 1 - l->bytes);
            return begin;
        }
        memmove(l->bytes, begin, l->to - l->from);
        l->to -= l->from;
        l->from = 0;
        if (l->to == sizeof l->bytes)
            return NULL;
        const ssize_t n = read(l->socket, l->bytes + l->to, sizeof l->bytes - l->to);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return NULL;
        l->to += (size_t)n;
    }
}

static void say(int socket, const char *text) { put(socket, text, strlen(text)); }

// The process of one connection.
static void session(const Server *s, int socket) {
    Lines lines = {.socket = socket};
    char user[32] = "", name[40], envelope[64], body[kMessage + 1];
    const unsigned directory = (unsigned)getpid() % kSpoolDirectories;
    unsigned count = 0;
    use_text(s, kUsedBySession);
    say(socket, "220 moscope ESMTP\r\n");
    for (const char *l; (l = line(&lines));) {
        if (!strncmp(l, "RCPT TO:<", 9)) {
            snprintf(user, sizeof user, "%.*s", (int)strcspn(l + 9, ">@"), l + 9);
            read_whole(s, "etc/aliases"); // whether there is such a user
            look_up(s, "etc/passwd");
            say(socket, "250 Accepted\r\n");
        } else if (!strcmp(l, "DATA")) {
            say(socket, "354 Enter message\r\n");
            body[0] = 0;
            while ((l = line(&lines)) && strcmp(l, "."))
                snprintf(body, sizeof body, "%.*s\n", kMessage - 1, l);
            if (!l || strlen(body) != kMessage)
                die("a message that is not 20 bytes long");
            snprintf(name, sizeof name, "%06d-%04u", (int)getpid(), count++);
            time_stamp(s); // the header line "Received"
            snprintf(envelope, sizeof envelope, "to %s\nmark %u\n", user, computing(user, name, kComputingReceived));
            queue_message(s, name, directory, envelope, body);
            log_line(s, "%s <= client@moscope\n", name);
            say(socket, "250 OK\r\n");
            deliver(s, name, directory);
        } else if (!strcmp(l, "QUIT")) {
            say(socket, "221 closing\r\n");
            break;
        } else {
            say(socket, "250 OK\r\n");
        }
    }
    close(socket);
}

_Noreturn void master(const Server *s) {
    signal(SIGCHLD, SIG_IGN); // ended sessions leave nothing behind
    for (;;) {
        const int socket = accept4(s->listener, NULL, NULL, SOCK_CLOEXEC);
        if (socket < 0) {
            if (errno == EINTR || errno == ECONNABORTED)
                continue;
            die("accept");
        }
        const pid_t p = fork();
        if (p < 0)
            die("fork");
        if (!p) {
            signal(SIGCHLD, SIG_DFL);
            close(s->listener);
            session(s, socket);
            _exit(0);
        }
        close(socket);
    }
}
