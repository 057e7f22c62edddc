// SPDX-License-Identifier: BSD-3-Clause
#define _GNU_SOURCE
#include "exim.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <sys/mount.h>
#include <sys/stat.h>

char spool_character(unsigned directory) {
    return "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"[directory];
}

_Noreturn void die(const char *what) {
    dprintf(2, "exim: %s: %s\n", what, strerror(errno));
    _exit(1);
}

void put(int file, const char *text, size_t size) {
    while (size) {
        const ssize_t n = write(file, text, size);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            die("write");
        text += n;
        size -= (size_t)n;
    }
}

void path_of(char *to, const Server *s, const char *format, ...) {
    const int n = snprintf(to, kPath, "%s/", s->base);
    va_list rest;
    va_start(rest, format);
    vsnprintf(to + n, kPath - (size_t)n, format, rest);
    va_end(rest);
}

int is_there(const Server *s, const char *format, const char *name) {
    char path[kPath];
    struct stat about;
    path_of(path, s, format, name);
    return stat(path, &about) == 0;
}

void read_whole(const Server *s, const char *name) {
    char path[kPath], text[4096];
    path_of(path, s, "%s", name);
    const int f = open(path, O_RDONLY | O_CLOEXEC);
    struct stat about;
    if (f < 0 || fstat(f, &about))
        die(path);
    while (read(f, text, sizeof text) > 0)
        ;
    close(f);
}

void look_up(const Server *s, const char *name) {
    if (!is_there(s, "etc/%s", "nsswitch.conf"))
        die("etc/nsswitch.conf");
    read_whole(s, name);
}

static void folder(const Server *s, const char *name) {
    char path[kPath];
    path_of(path, s, "%s", name);
    if (mkdir(path, 0755))
        die(path);
}

static void file_with(const Server *s, const char *name, const char *text) {
    char path[kPath];
    path_of(path, s, "%s", name);
    const int f = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    if (f < 0)
        die(path);
    put(f, text, strlen(text));
    close(f);
}

// A file with a line for each user; the reading of what is in it is not the point.
static void users(const Server *s, const char *name, const char *format) {
    char path[kPath], line[kPath];
    path_of(path, s, "%s", name);
    const int f = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    if (f < 0)
        die(path);
    for (unsigned i = 0; i < s->clients; ++i)
        put(f, line, (size_t)snprintf(line, sizeof line, format, i, 1000 + i, i));
    close(f);
}

void make_tree(Server *s) {
    snprintf(s->base, sizeof s->base, "%s", s->directory);
    for (unsigned i = 0; i < 2; ++i) {
        if (i)
            strcat(s->base, "/exim");
        if (mkdir(s->base, 0755))
            die(s->base);
        s->mounted += !mount("exim", s->base, "tmpfs", 0, "mode=0755");
    }
    const char *const folders[] = {"etc", "spool", "spool/input", "spool/msglog", "spool/db", "mail", "log", "home", "lib"};
    for (unsigned i = 0; i < sizeof folders / sizeof *folders; ++i)
        folder(s, folders[i]);
    for (unsigned i = 0; i < kSpoolDirectories; ++i) {
        char name[32];
        snprintf(name, sizeof name, "spool/input/%c", spool_character(i));
        folder(s, name);
        snprintf(name, sizeof name, "spool/msglog/%c", spool_character(i));
        folder(s, name);
    }
    file_with(s, "etc/aliases", "postmaster: root\nmailer-daemon: root\n");
    file_with(s, "etc/exim.conf", "split_spool_directory\nlocal_delivery: mail/$local_part\n");
    file_with(s, "etc/localtime", "");
    file_with(s, "etc/nsswitch.conf", "passwd: files\ngroup: files\n");
    file_with(s, "spool/db/retry.lockfile", "");
    file_with(s, "log/mainlog", "");
    users(s, "etc/passwd", "user%u:x:%u:100::user%u:/bin/sh\n");
    users(s, "etc/group", "user%u:x:%u:\n");
    for (unsigned i = 0; i < s->clients; ++i) {
        char name[32];
        snprintf(name, sizeof name, "home/user%u", i);
        folder(s, name);
        snprintf(name, sizeof name, "mail/user%u", i);
        file_with(s, name, "");
    }
}

static void remove_below(const char *path) {
    DIR *d = opendir(path);
    for (struct dirent *e; d && (e = readdir(d));) {
        char below[kPath + sizeof e->d_name];
        if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, ".."))
            continue;
        if (snprintf(below, sizeof below, "%s/%s", path, e->d_name) >= (int)sizeof below)
            continue; // none of ours
        if (e->d_type == DT_DIR)
            remove_below(below);
        else
            unlink(below);
    }
    if (d)
        closedir(d);
    rmdir(path);
}

static int unmounted(const char *path) {
    int tries = 400; // the last sessions may be about to end
    while (umount(path) && errno == EBUSY && --tries)
        usleep(5000);
    if (!tries)
        dprintf(2, "exim: %s: %s: a file or a directory there is still in use\n", path, strerror(errno));
    return tries;
}

int remove_tree(const Server *s) {
    if (!s->mounted) {
        remove_below(s->directory);
        return 1;
    }
    if (!unmounted(s->base) || !unmounted(s->directory))
        return 0;
    rmdir(s->directory);
    return 1;
}
