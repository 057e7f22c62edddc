// SPDX-License-Identifier: BSD-3-Clause
#define _GNU_SOURCE
#include "exim.h"

#include <fcntl.h>
#include <stdarg.h>
#include <sys/stat.h>
#include <time.h>

static int file = -1; // of the process that opened it, and of those that it forks
static ino_t inode;

void time_stamp(const Server *s) {
    if (!is_there(s, "etc/%s", "localtime"))
        die("etc/localtime");
}

void log_line(const Server *s, const char *format, ...) {
    char line[2 * kPath], path[kPath];
    struct timespec now;
    struct stat about;
    time_stamp(s);
    clock_gettime(CLOCK_REALTIME, &now);
    int n = snprintf(line, sizeof line, "%lld ", (long long)now.tv_sec);
    va_list rest;
    va_start(rest, format);
    n += vsnprintf(line + n, sizeof line - (size_t)n, format, rest);
    va_end(rest);
    path_of(path, s, "log/mainlog");
    if (file >= 0 && (stat(path, &about) || about.st_ino != inode)) {
        close(file);
        file = -1;
    }
    if (file < 0) {
        file = open(path, O_WRONLY | O_APPEND | O_CLOEXEC);
        if (file < 0 || fstat(file, &about))
            die(path);
        inode = about.st_ino;
    }
    put(file, line, (size_t)n);
}
