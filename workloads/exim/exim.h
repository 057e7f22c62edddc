// SPDX-License-Identifier: BSD-3-Clause
// A mail server as the kernel sees it: what Exim 4.71 does for each message in the MOSBENCH paper's configuration
// (section 3.1), in system calls, processes and files, and computing of the same length between them. A master accepts connections
// and forks a process for each; that receives ten messages of 20 bytes, queues each in one of 62 spool directories chosen by
// its process number, forks to deliver it, and forks again to append it to the user's mail file; the delivery is
// recorded in a log that all share, the spool files are deleted. Clients run on the same machine, one user each.
//
// Each client has one line of state that others read when all is over; nothing else is shared in user memory.
#pragma once

#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#include "../common/workload.h"

enum {
    kMessage = 20,          // bytes, newline included
    kPerConnection = 10,    // messages
    kSpoolDirectories = 62, // one for each character of Exim's base-62 names
    kMostClients = 4 * kMaxCores,
    kPath = 160,
    // Rounds of `computing` for each message. Together they leave the kernel 62 % of one core's time; in the
    // paper it has 69 %; that the delivering process has the larger part is assumed (it reads the configuration).
    kComputingReceived = 9,
    kComputingDelivered = 15,
    // The program's and its libraries' text, as files that are mapped; pages of it that each process uses. A process finds
    // those that it uses by page faults, after a fork too. How many is assumed; that faults on a file's pages have the largest
    // part of the kernel's time is from the paper's profiles.
    kLibraries = 8,
    kLibraryPages = 64,
    kUsedBySession = 256,
    kUsedByDelivery = 240,
    kUsedByAppend = 160,
};

// A client's own line: written by the client alone, read by others after it has ended.
typedef struct {
    _Alignas(kLine) uint64_t acknowledged; // messages that the server has taken
    uint64_t connections;
    int32_t failed;
} ClientState;

typedef struct {
    _Alignas(kLine) volatile int stop; // clients end after the message at hand
    ClientState client[];
} Shared;

typedef struct {
    const char *directory; // everything lies below it
    char base[kPath];      // in the inner of two file systems of its own, where the user may mount them
    int mounted;           // how many of them are
    unsigned clients;
    uint64_t messages;     // of each client; 0: until stopped
    int port, listener;
    int ready;             // pipe's end on which a client reports the end of its first connection
    const volatile char *text[kLibraries];
    Shared *shared;
} Server;

// files.c: where things are. Every access is by absolute path, as Exim's are.
void path_of(char *to, const Server *, const char *format, ...) __attribute__((format(printf, 3, 4)));
char spool_character(unsigned directory); // its name
void make_tree(Server *);
// 0 if the tree's file system is still in use when all that used it have ended, or soon after.
int remove_tree(const Server *);
_Noreturn void die(const char *what);
// Writes all of it or ends the process.
void put(int file, const char *text, size_t size);
// As the C library looks a user or group up in `etc/passwd` or `etc/group`: where to look, and if that has changed; the file to its end.
void look_up(const Server *, const char *name);
// Reads a file to its end.
void read_whole(const Server *, const char *name);
// A look at a path that is of interest for its being there only.
int is_there(const Server *, const char *format, const char *name);

// program.c: the program's text. Maps its files; uses so many of its pages, spread over them.
void map_text(Server *);
void unmap_text(Server *);
void use_text(const Server *, unsigned pages);

// log.c: what a local time costs: the C library looks whether the time zone's file is the same as before.
void time_stamp(const Server *);
// A line in the log that all share, which begins with a time. Exim looks whether the log's file is the same as before, too.
void log_line(const Server *, const char *format, ...) __attribute__((format(printf, 2, 3)));

// session.c: the server's side.
_Noreturn void master(const Server *);

// delivery.c: queues a message, or delivers a queued one; the name is that of its spool files.
void queue_message(const Server *, const char *name, unsigned directory, const char *envelope, const char *body);
void deliver(const Server *, const char *name, unsigned directory);

// compute.c: expands strings about a message; the same mark after any number of rounds.
uint32_t computing(const char *user, const char *name, unsigned rounds);

// client.c
_Noreturn void client(const Server *, unsigned number);
// The 20 bytes of a client's message.
void message_text(char *to, unsigned client, uint64_t number);

// verify.c: whether each mailbox holds the acknowledged messages, each once, in order, the log a line for each, and
// the spool nothing. Tells what is wrong on stderr.
int verify(const Server *, uint64_t *delivered);
