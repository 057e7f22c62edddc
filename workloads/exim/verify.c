// SPDX-License-Identifier: BSD-3-Clause
#define _GNU_SOURCE
#include "exim.h"

#include <dirent.h>

static uint64_t mailbox(const Server *s, unsigned c, int *right) {
    char path[kPath], line[kPath], wanted[64], user[32];
    path_of(path, s, "mail/user%u", c);
    FILE *f = fopen(path, "r");
    uint64_t n = 0;
    snprintf(user, sizeof user, "From user%u ", c);
    while (f && *right && fgets(line, sizeof line, f)) {
        *right = !strncmp(line, user, strlen(user)) && fgets(line, sizeof line, f);
        message_text(wanted, c, n++);
        *right = *right && !strcmp(line, wanted);
    }
    if (f)
        fclose(f);
    if (!*right)
        dprintf(2, "exim: %s: message %llu is not the one that was sent\n", path, (unsigned long long)n - 1);
    return n;
}

static int spool_empty(const Server *s) {
    const char *const trees[] = {"input", "msglog"};
    for (unsigned t = 0; t < 2; ++t)
        for (unsigned i = 0; i < kSpoolDirectories; ++i) {
            char path[kPath];
            path_of(path, s, "spool/%s/%c", trees[t], spool_character(i));
            DIR *d = opendir(path);
            for (struct dirent *e; d && (e = readdir(d));)
                if (e->d_name[0] != '.') {
                    dprintf(2, "exim: %s/%s is left over\n", path, e->d_name);
                    closedir(d);
                    return 0;
                }
            if (!d)
                return 0;
            closedir(d);
        }
    return 1;
}

int verify(const Server *s, uint64_t *delivered) {
    int right = 1;
    *delivered = 0;
    for (unsigned c = 0; c < s->clients && right; ++c) {
        const uint64_t n = mailbox(s, c, &right), sent = s->shared->client[c].acknowledged;
        if (n != sent || s->shared->client[c].failed) {
            dprintf(2, "exim: user%u has %llu messages of %llu\n", c, (unsigned long long)n, (unsigned long long)sent);
            right = 0;
        }
        *delivered += n;
    }
    char path[kPath], line[kPath];
    uint64_t logged = 0;
    path_of(path, s, "log/mainlog");
    FILE *f = fopen(path, "r");
    while (f && fgets(line, sizeof line, f))
        logged += strstr(line, "Completed\n") != NULL;
    if (f)
        fclose(f);
    if (logged != *delivered) {
        dprintf(2, "exim: the log has %llu deliveries of %llu\n", (unsigned long long)logged, (unsigned long long)*delivered);
        right = 0;
    }
    return spool_empty(s) && right;
}
