// SPDX-License-Identifier: BSD-3-Clause
// The server's own computing: Exim decides everything about a message by expanding strings of its configuration (access
// lists, routers, transports, rewriting, log lines). Here a small language of that kind is expanded again and again. How
// often is chosen so that the kernel's share at one core comes near the paper's (`computing` in exim.h); what comes out is the message's
// mark, which the receiving process writes and the delivering one finds again.
#include "exim.h"

#include <ctype.h>

// `$name` a variable; `${lc:TEXT}`; `${hash:TEXT}`; `${if eq{A}{B}{YES}{NO}}`. Braces nest.
static const char *const kStrings[] = {
    "${if eq{$domain}{$primary_hostname}{local}{remote}} ${lc:$local_part@$domain} via $transport",
    "${if eq{${lc:$sender_address}}{$local_part@$domain}{self}{${if eq{$sender_host}{$interface}{near}{far}}}}",
    "H=$sender_host [$interface]:$port I=[$interface]:${hash:$port$sender_host} P=$protocol S=$size id=$message_id",
    "$spool_directory/input/${hash:$message_id}/$message_id-H $spool_directory/msglog/$message_id",
    "${if eq{$transport}{local_delivery}{$mail/${lc:$local_part}}{${if eq{$transport}{pipe}{|$local_part}{:defer:}}}}",
    "Received: from $sender_host by $primary_hostname with $protocol (id $message_id) for $local_part@$domain; $when",
    "${if eq{$authenticated}{}{${if eq{$relay_from}{$sender_host}{accept}{deny}}}{accept}} for $local_part@${lc:$domain}",
    "$when $message_id <= $sender_address H=$sender_host P=$protocol S=$size ${hash:$local_part} T=\"$subject\"",
};
enum { kStringCount = sizeof kStrings / sizeof *kStrings, kExpanded = 512 };

typedef struct {
    const char *name, *value;
} Variable;

typedef struct {
    const Variable *variables;
    unsigned count;
    char *to, *end;
} Expansion;

static const char *value_of(const Expansion *e, const char *name, size_t length) {
    for (unsigned i = 0; i < e->count; ++i)
        if (!strncmp(e->variables[i].name, name, length) && !e->variables[i].name[length])
            return e->variables[i].value;
    return "";
}

static void give(Expansion *e, char c) {
    if (e->to < e->end)
        *e->to++ = c;
}

static uint32_t hash_of(const char *from, const char *to) {
    uint32_t h = 2166136261u;
    while (from < to)
        h = (h ^ (unsigned char)*from++) * 16777619u;
    return h;
}

static const char *expand(Expansion *, const char *from, char until);

// What `{...}` at `from` expands to, left between the old and the new `to`.
static const char *braces(Expansion *e, const char *from) { return expand(e, from + 1, '}') + 1; }

static const char *condition(Expansion *e, const char *from) {
    char *const begin = e->to;
    from = braces(e, from);
    char *const middle = e->to;
    from = braces(e, from);
    const int same = middle - begin == e->to - middle && !memcmp(begin, middle, (size_t)(middle - begin));
    e->to = begin;
    for (int branch = 1; branch >= 0; --branch) {
        char *const kept = e->to;
        from = braces(e, from);
        if (branch != same)
            e->to = kept;
    }
    return from + 1;
}

static const char *call(Expansion *e, const char *from) {
    if (!strncmp(from, "if eq", 5))
        return condition(e, from + 5);
    char *const begin = e->to;
    const int lower = *from == 'l';
    from = expand(e, strchr(from, ':') + 1, '}') + 1;
    if (lower) {
        for (char *c = begin; c < e->to; ++c)
            *c = (char)tolower((unsigned char)*c);
        return from;
    }
    uint32_t h = hash_of(begin, e->to);
    for (e->to = begin; h; h /= kSpoolDirectories)
        give(e, spool_character(h % kSpoolDirectories));
    return from;
}

// Expands up to the character `until`, at which it returns.
static const char *expand(Expansion *e, const char *from, char until) {
    while (*from && *from != until) {
        if (*from != '$') {
            give(e, *from++);
        } else if (from[1] == '{') {
            from = call(e, from + 2);
        } else {
            const char *const name = ++from;
            while (*from == '_' || (*from >= 'a' && *from <= 'z'))
                ++from;
            for (const char *v = value_of(e, name, (size_t)(from - name)); *v; ++v)
                give(e, *v);
        }
    }
    return from;
}

uint32_t computing(const char *user, const char *name, unsigned rounds) {
    const Variable variables[] = {
        {"authenticated", ""}, {"domain", "MOSCOPE"}, {"interface", "127.0.0.1"}, {"local_part", user}, {"mail", "/var/mail"},
        {"message_id", name}, {"port", "25"}, {"primary_hostname", "moscope"}, {"protocol", "esmtp"}, {"relay_from", "127.0.0.1"},
        {"sender_address", "client@moscope"}, {"sender_host", "127.0.0.1"}, {"size", "20"}, {"spool_directory", "/var/spool/exim"},
        {"subject", ""}, {"transport", "local_delivery"}, {"when", "Sun, 03 Oct 2010 00:00:00 +0000"},
    };
    uint32_t mark = 0;
    for (unsigned i = 0; i < rounds * kStringCount; ++i) {
        char text[kExpanded];
        Expansion e = {.variables = variables, .count = sizeof variables / sizeof *variables, .to = text, .end = text + sizeof text};
        expand(&e, kStrings[i % kStringCount], 0);
        mark = i % kStringCount ? mark * 31 + hash_of(text, e.to) : hash_of(text, e.to);
    }
    return mark;
}
