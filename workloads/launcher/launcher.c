// SPDX-License-Identifier: BSD-3-Clause
// Runs a service of the distribution as a workload: starts its processes, waits until each accepts connections, has the hosts
// at the other end of the network card load it (docs/ethernet.md), and at the end takes their count of answers, right and
// wrong. In the commands %c stands for a core, %n for the number of cores, %p for the port, %% for a percent sign.
#include "../common/workload.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>

enum { kControlPort = 7000, kMostText = 1024, kTries = 10 };
static const char *const kControl = "10.1.0.2", *const kLog = "/run/service.log";

static const char *name = "service", *prepare = "", *each = "", *load = "", *port = "80", *processes = "cores";
static pid_t children[kMaxCores];
static unsigned started;

static _Noreturn void give_up(const char *what) {
    fprintf(stderr, "%s: %s\n", name, what);
    for (unsigned i = 0; i < started; ++i)
        kill(-children[i], SIGKILL);
    printf("moscope: %s verify=wrong\n", name);
    exit(1);
}

static void fill(char *to, const char *from, unsigned core, unsigned cores, unsigned at) {
    char *const end = to + kMostText - 16;
    for (; *from && to < end; ++from) {
        const unsigned value = from[0] != '%' ? 0 : from[1] == 'c' ? core : from[1] == 'n' ? cores : at;
        if (from[0] == '%' && from[1] == '%') {
            *to++ = *from++;
        } else if (from[0] == '%' && from[1] && strchr("cnp", from[1])) {
            to += sprintf(to, "%u", value);
            ++from;
        } else {
            *to++ = *from;
        }
    }
    *to = 0;
    if (*from)
        give_up("a command of its description is too long: about 1000 characters would be right");
}

static void start(const char *command, unsigned core, int pinned) {
    const pid_t child = fork();
    if (child < 0)
        give_up("no more processes");
    if (child == 0) {
        setpgid(0, 0); // Ctrl-C is for this program alone
        if (pinned)
            pin(core);
        const int in = open("/dev/null", O_RDONLY), out = open(kLog, O_WRONLY | O_CREAT | O_APPEND, 0644);
        dup2(in, 0);
        dup2(out, 1);
        dup2(out, 2);
        execl("/bin/sh", "sh", "-c", command, (char *)NULL);
        _exit(127);
    }
    setpgid(child, child);
    children[started++] = child;
}

static int one_has_ended(void) {
    for (unsigned i = 0; i < started; ++i)
        if (waitpid(children[i], NULL, WNOHANG) == children[i])
            return 1;
    return 0;
}

static struct sockaddr_in address(const char *ip, unsigned at) {
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(at)};
    inet_pton(AF_INET, ip, &a.sin_addr);
    return a;
}

static void wait_until_ready(unsigned at) {
    const struct sockaddr_in a = address("127.0.0.1", at);
    for (unsigned tries = 0; tries < 3000; ++tries) {
        const int s = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        const int failed = connect(s, (const struct sockaddr *)&a, sizeof a);
        close(s);
        if (!failed)
            return;
        if (one_has_ended())
            give_up("a process of the service ended (its output is in /run/service.log)");
        usleep(10000);
    }
    give_up("does not accept connections");
}

// Sends a command to the control host; the answer's text after "ok". The card drops a part of all datagrams while its
// receive FIFO is full of the clients' packets, so the first tries wait briefly.
static const char *control(const char *verb, const char *rest) {
    static char answer[kMostText];
    char command[kMostText + 16];
    const int size = snprintf(command, sizeof command, "%s %s", verb, rest);
    const int s = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    const struct sockaddr_in a = address(kControl, kControlPort);
    if (connect(s, (const struct sockaddr *)&a, sizeof a))
        give_up("no way to the control host: is there a network card?");
    for (unsigned tries = 0; tries < kTries; ++tries) {
        const struct timeval patience = {.tv_usec = tries < 6 ? 10000 << tries : 500000};
        setsockopt(s, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
        if (send(s, command, size, 0) != size)
            continue;
        ssize_t got;
        while ((got = recv(s, answer, sizeof answer - 1, 0)) < 0 && errno == EINTR)
            ;
        if (got > 0) {
            close(s);
            answer[got] = 0;
            answer[strcspn(answer, "\n")] = 0;
            if (strncmp(answer, "ok", 2))
                give_up(answer);
            return answer + 2;
        }
    }
    give_up("the control host does not answer");
}

static uint64_t value(const char *report, const char *key) {
    const char *at = strstr(report, key);
    return at ? strtoull(at + strlen(key), NULL, 10) : 0;
}

int main(int argc, char **argv) {
    const Extra extras[] = {{"name", &name}, {"prepare", &prepare}, {"each", &each},
                            {"load", &load}, {"port", &port},       {"processes", &processes}};
    Options o = {.name = "launcher"};
    options_read(&o, argc, argv, extras, sizeof extras / sizeof *extras);
    stop_on_signals(&o);
    const int one = !strcmp(processes, "one");
    if (!one && strcmp(processes, "cores")) {
        fprintf(stderr, "launcher: --processes: \"%s\": one or cores would be right\n", processes);
        return 2;
    }
    const unsigned first = (unsigned)number_of_text("launcher", "--port", port, 1, 65535), count = one ? 1 : o.cores;
    char text[kMostText], driver[kMostText];

    if (*prepare) {
        fill(text, prepare, 0, o.cores, first);
        if (system(text))
            give_up("its preparation failed");
    }
    for (unsigned i = 0; i < count; ++i) {
        fill(text, each, i, o.cores, first + i);
        start(text, i, !one);
    }
    for (unsigned i = 0; i < count; ++i)
        wait_until_ready(first + i);
    fill(text, load, 0, o.cores, first);
    control("start", text);
    snprintf(driver, sizeof driver, "%.*s", (int)strcspn(text, " "), text);
    for (unsigned tries = 0;; ++tries) {
        const char *const report = control("report", driver);
        if (value(report, " wrong=") > 0 || tries == 5000) {
            snprintf(text, sizeof text, "its clients get %s:%s", tries == 5000 ? "no answers" : "wrong answers",
                     report);
            give_up(text);
        }
        if (value(report, " answers=") >= 200ull * o.cores && value(report, " to_open=") == 0)
            break;
        usleep(5000);
    }

    sigset_t all, old;
    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, &old);
    region_begin();
    while (!stopped)
        sigsuspend(&old);
    sigprocmask(SIG_SETMASK, &old, NULL);

    control("stop", driver);
    usleep(200000); // what is under way arrives
    const char *report = control("report", driver);
    const uint64_t wrong = value(report, " wrong="), answers = value(report, " answers=");
    const int lost = one_has_ended();
    if (lost) // others may have answered all the same
        fprintf(stderr, "%s: a process of the service ended before it was stopped (its output is in /run/service.log)\n", name);
    for (unsigned i = 0; i < count; ++i)
        kill(-children[i], SIGTERM);
    while (wait(NULL) > 0)
        ;
    const int right = answers > 0 && wrong == 0 && !lost;
    printf("moscope: %s cores=%u%s verify=%s\n", name, o.cores, report, right ? "ok" : "wrong");
    return !right;
}
