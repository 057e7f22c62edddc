// SPDX-License-Identifier: BSD-3-Clause
// What happens to one message. The order of calls is Exim's: a data file, a header file that is renamed when whole, a message
// log; for the delivery the configuration, aliases, the user's directory and `.forward` are looked up, the mail file is
// locked by a lock file and by fcntl, a journal is kept until all is done.
#define _GNU_SOURCE
#include "exim.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/wait.h>
#include <time.h>

static int opened(const Server *s, int flags, const char *format, unsigned directory, const char *name) {
    char path[kPath];
    path_of(path, s, format, spool_character(directory), name);
    const int f = open(path, flags | O_CLOEXEC, 0640);
    if (f < 0)
        die(path);
    return f;
}

static void removed(const Server *s, const char *format, unsigned directory, const char *name) {
    char path[kPath];
    path_of(path, s, format, spool_character(directory), name);
    if (unlink(path))
        die(path);
}

void queue_message(const Server *s, const char *name, unsigned directory, const char *envelope, const char *body) {
    char path[kPath], whole[kPath];
    struct statfs space;
    struct stat about;
    path_of(path, s, "spool/input");
    if (statfs(path, &space) || !is_there(s, "spool/input/%s", (char[]){spool_character(directory), 0}))
        die(path);
    const int data = opened(s, O_RDWR | O_CREAT | O_EXCL, "spool/input/%c/%s-D", directory, name);
    put(data, name, strlen(name));
    put(data, "-D\n", 3);
    put(data, body, kMessage);
    if (fstat(data, &about))
        die("fstat");
    const int header = opened(s, O_RDWR | O_CREAT | O_EXCL, "spool/input/%c/hdr.%s", directory, name);
    put(header, envelope, strlen(envelope));
    close(header);
    path_of(path, s, "spool/input/%c/hdr.%s", spool_character(directory), name);
    path_of(whole, s, "spool/input/%c/%s-H", spool_character(directory), name);
    if (rename(path, whole))
        die(path);
    const int log = opened(s, O_WRONLY | O_CREAT | O_APPEND, "spool/msglog/%c/%s", directory, name);
    time_stamp(s);
    put(log, "received\n", 9);
    close(log);
    close(data);
}

// The hints about earlier failures: there are none, but that is found out under a lock.
static void look_at_hints(const Server *s) {
    char path[kPath];
    path_of(path, s, "spool/db/retry.lockfile");
    const int f = open(path, O_RDWR | O_CLOEXEC);
    struct flock all = {.l_type = F_RDLCK, .l_whence = SEEK_SET};
    if (f < 0 || fcntl(f, F_SETLKW, &all) || is_there(s, "spool/db/%s", "retry"))
        die(path);
    close(f);
}

// In a process of its own, as the user's: appends the message to the mail file.
static void append(const Server *s, const char *user, const char *name, const char *body) {
    char mail[kPath], lock[kPath], hitch[kPath], home[kPath];
    struct stat about;
    use_text(s, kUsedByAppend);
    look_up(s, "etc/group");
    path_of(home, s, "home/%s", user);
    if (chdir(home))
        die(home);
    path_of(mail, s, "mail/%s", user);
    path_of(lock, s, "mail/%s.lock", user);
    path_of(hitch, s, "mail/%s.%s", user, name);
    const int h = open(hitch, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0640);
    if (h < 0)
        die(hitch);
    close(h);
    while (link(hitch, lock)) { // a mail file has one writer at a time
        if (errno != EEXIST)
            die(lock);
        usleep(1000);
    }
    unlink(hitch);
    if (lstat(mail, &about))
        die(mail);
    const int f = open(mail, O_RDWR | O_APPEND | O_CLOEXEC);
    struct flock all = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    if (f < 0 || fstat(f, &about) || fcntl(f, F_SETLKW, &all) || lstat(mail, &about) || lseek(f, 0, SEEK_END) < 0)
        die(mail);
    time_stamp(s); // the line that begins a message, and the header line "Delivery-date"
    time_stamp(s);
    char text[kPath];
    const int n = snprintf(text, sizeof text, "From %s %s\n%.*s\n", user, name, kMessage - 1, body);
    put(f, text, (size_t)n);
    const struct timespec times[2] = {about.st_atim, {.tv_nsec = UTIME_NOW}};
    if (utimensat(AT_FDCWD, mail, times, 0))
        die(mail);
    close(f);
    if (unlink(lock))
        die(lock);
}

static pid_t forked(void) {
    const pid_t p = fork();
    if (p < 0)
        die("fork");
    return p;
}

static void wait_for(pid_t p) {
    int status;
    while (waitpid(p, &status, 0) < 0)
        if (errno != EINTR)
            die("waitpid");
    if (status)
        _exit(1);
}

// The delivering process: finds out where the message goes, has it appended, records it, cleans up.
static void deliver_here(const Server *s, const char *name, unsigned directory) {
    char header[kPath] = "", body[kMessage + 64] = "", user[32] = "";
    use_text(s, kUsedByDelivery);
    read_whole(s, "etc/exim.conf");
    const int h = opened(s, O_RDWR, "spool/input/%c/%s-H", directory, name);
    unsigned mark;
    if (read(h, header, sizeof header - 1) <= 0 || sscanf(header, "to %31s mark %u", user, &mark) != 2)
        die("a spooled header");
    if (computing(user, name, kComputingDelivered) != mark)
        die("a message's mark");
    close(h);
    const int d = opened(s, O_RDWR, "spool/input/%c/%s-D", directory, name);
    struct flock all = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    const ssize_t skip = (ssize_t)strlen(name) + 3;
    if (fcntl(d, F_SETLK, &all) || read(d, body, (size_t)skip + kMessage) != skip + kMessage)
        die("a spooled message");
    look_at_hints(s); // about the address, and below about the transport
    read_whole(s, "etc/aliases");
    look_up(s, "etc/passwd");
    char forward[kPath];
    snprintf(forward, sizeof forward, "%s/.forward", user);
    if (!is_there(s, "home/%s", user) || is_there(s, "home/%s", forward) || !is_there(s, "mail/%s", user) || !is_there(s, "%s", "spool/db"))
        die(user);
    char old[kPath];
    snprintf(old, sizeof old, "%c/%s-J", spool_character(directory), name);
    if (is_there(s, "spool/input/%s", old)) // of a delivery that was cut off
        die(old);
    const int journal = opened(s, O_WRONLY | O_CREAT | O_APPEND, "spool/input/%c/%s-J", directory, name);
    look_at_hints(s);
    look_up(s, "etc/passwd"); // the user of the delivery
    const pid_t writer = forked();
    if (!writer) {
        append(s, user, name, body + skip);
        _exit(0);
    }
    wait_for(writer);
    put(journal, user, strlen(user));
    close(journal);
    const int log = opened(s, O_WRONLY | O_APPEND, "spool/msglog/%c/%s", directory, name);
    time_stamp(s);
    put(log, "delivered\n", 10);
    close(log);

    log_line(s, "%s => %s\n", name, user);
    log_line(s, "%s Completed\n", name);
    removed(s, "spool/msglog/%c/%s", directory, name);
    removed(s, "spool/input/%c/%s-D", directory, name);
    removed(s, "spool/input/%c/%s-H", directory, name);
    removed(s, "spool/input/%c/%s-J", directory, name);
    close(d);
    operation_done();
}

void deliver(const Server *s, const char *name, unsigned directory) {
    const pid_t p = forked();
    if (!p) {
        deliver_here(s, name, directory);
        _exit(0);
    }
    wait_for(p);
}
