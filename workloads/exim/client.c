// SPDX-License-Identifier: BSD-3-Clause
#define _GNU_SOURCE
#include "exim.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <sys/socket.h>

void message_text(char *to, unsigned client, uint64_t number) {
    snprintf(to, kMessage + 1, "c%04u m%012llu\n", client % 10000, (unsigned long long)number % 1000000000000ull);
}

// One exchange: sends, reads up to the end of a line; whether the answer begins with the code.
static int exchange(int socket, const char *text, const char *code) {
    char answer[256];
    size_t have = 0;
    if (text)
        put(socket, text, strlen(text));
    while (!have || answer[have - 1] != '\n') {
        const ssize_t n = have == sizeof answer ? -1 : read(socket, answer + have, sizeof answer - have);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return 0;
        have += (size_t)n;
    }
    return !strncmp(answer, code, 3);
}

static int connected(const Server *s) {
    const struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons((uint16_t)s->port),
                                   .sin_addr = {htonl(INADDR_LOOPBACK)}};
    const int socket_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (socket_ < 0 || connect(socket_, (const struct sockaddr *)&to, sizeof to))
        die("connect");
    return socket_;
}

_Noreturn void client(const Server *s, unsigned number) {
    ClientState *me = &s->shared->client[number];
    char recipient[64], text[64];
    snprintf(recipient, sizeof recipient, "RCPT TO:<user%u@moscope>\r\n", number);
    while (!s->shared->stop && (!s->messages || me->acknowledged < s->messages)) {
        // First connections are of different lengths, so that later ones do not all begin at once.
        const unsigned most = me->connections ? kPerConnection : number % kPerConnection + 1;
        const int c = connected(s);
        int well = exchange(c, NULL, "220") && exchange(c, "EHLO client\r\n", "250");
        for (unsigned i = 0; well && i < most && !s->shared->stop && (!s->messages || me->acknowledged < s->messages); ++i) {
            message_text(text, number, me->acknowledged);
            memcpy(text + kMessage - 1, "\r\n.\r\n", 6);
            well = exchange(c, "MAIL FROM:<client@moscope>\r\n", "250") && exchange(c, recipient, "250") &&
                   exchange(c, "DATA\r\n", "354") && exchange(c, text, "250");
            if (!well)
                break;
            ++me->acknowledged;
        }
        // The server reads on once it has delivered, so that nothing is under way when a client has ended.
        well = well && exchange(c, "QUIT\r\n", "221");
        close(c);
        if (!me->connections++)
            put(s->ready, "", 1);
        if (!well) {
            me->failed = 1;
            dprintf(2, "exim: client %u: the server gave up\n", number);
            _exit(1);
        }
    }
    _exit(0);
}
