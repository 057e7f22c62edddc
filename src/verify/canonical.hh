// SPDX-License-Identifier: BSD-3-Clause
// Canonical states. One state stands for all that differ only in the names of interchangeable controllers and lines, or
// in the slots of messages: the one whose bytes compare lowest. Ages of data blocks that no load can distinguish are
// made equal, too.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>

#include "verify/rules.hh"

namespace moscope::verify {

/// New numbers by old ones.
struct Renaming {
    const std::uint8_t *controller; ///< by controller
    const std::uint8_t *line;       ///< by line - 1; the values are lines
};

/// Renames what a structure's fields refer to.
struct Renamer {
    Renaming to;
    std::uint8_t controller(std::uint8_t c) const { return c == kMemory ? c : to.controller[c]; }
    Addr line_of(Addr a) const { return a == 0 ? a : to.line[a - 1]; }
    void data(const char *, DataBlock &) {}
    void line(const char *, Addr &a) const { a = line_of(a); }
    void machine(const char *, MachineID &m) const {
        if (m.isValid() && layout.has(m))
            m = layout.id[to.controller[layout.index(m)]];
    }
    void machines(const char *, NetDest &set) const {
        unsigned bits = 0;
        for (unsigned left = set.bits(); left; left &= left - 1)
            bits |= 1u << to.controller[std::countr_zero(left)];
        set.put(bits);
    }
    template <class X> void plain(const char *, X &) {}
};

/// Sorts the messages by receiver, buffer and sender; then in the order in which they were sent, where the network
/// keeps it, else by content. Calls moved(i, j) when two have changed places.
template <class State, class F> void sort_messages(State &s, F &&moved) {
    using Message = typename State::Message;
    const auto before = [](const Message &a, const Message &b) {
        if (const int c = std::memcmp(&a.to, &b.to, 3))
            return c < 0;
        if (a.to == kMemory)
            return a.line < b.line;
        if (State::ordered(layout.id[a.to].type, a.buffer))
            return false;
        return std::memcmp(&a, &b, sizeof(Message)) < 0;
    };
    for (unsigned i = 1; i < s.messages; ++i)
        for (unsigned j = i; j > 0 && before(s.slots[j], s.slots[j - 1]); --j) {
            std::swap(s.slots[j], s.slots[j - 1]);
            moved(j, j - 1);
        }
}
template <class State> void sort_messages(State &s) {
    sort_messages(s, [](unsigned, unsigned) {});
}

/// How many bytes of a state are in use; the rest are unused slots.
template <class State> std::size_t used_bytes(const State &s) {
    return offsetof(State, slots) + s.messages * sizeof(s.slots[0]);
}

/// Copies a state without its unused slots.
template <class State> void copy_used(State &to, const State &from) {
    std::memcpy(static_cast<void *>(&to), &from, used_bytes(from));
}

/// Takes a message out.
template <class State> void remove_message(State &s, unsigned slot) {
    --s.messages;
    std::memmove(&s.slots[slot], &s.slots[slot + 1], (s.messages - slot) * sizeof(s.slots[0]));
}

/// Marks all blocks stale that are too old for any load under way to read.
template <class State> void forget_old_values(State &s) {
    for (Addr line = 1; line <= State::kLines; ++line) {
        unsigned oldest = 0;
        for (const Core &c : s.cores)
            if (c.reads() && c.line == line)
                oldest = std::max<unsigned>(oldest, c.since);
        each_block(s, line, [oldest](DataBlock &d) {
            if (d.age > oldest && d.age <= DataBlock::kOldest)
                d.age = DataBlock::kStale;
        });
    }
}

/// The inverse of each renaming: old numbers by new ones. Not a constant expression: eight caches have 40 320 renamings,
/// more than compilers evaluate.
template <class Machine>
inline const auto inverse_renamings = [] {
    constexpr std::size_t n = std::size(Machine::kRenamings), width = std::size(Machine::kRenamings[0]);
    std::array<std::array<std::uint8_t, width>, n> all{};
    for (std::size_t i = 0; i < n; ++i)
        for (std::size_t c = 0; c < width; ++c)
            all[i][Machine::kRenamings[i][c]] = static_cast<std::uint8_t>(c);
    return all;
}();

/// Renames the contents of a controller's tables.
template <class Machine, class Data> void rename_tables(Data &d, const Renaming &by) {
    constexpr unsigned kLines = Machine::State::kLines;
    Data::visit_tables(d, [&](const char *, auto &table) {
        using Entry = std::remove_reference_t<decltype(table.entries[0])>;
        if constexpr (kLines > 1) {
            const auto old = table;
            for (unsigned i = 0; i < kLines; ++i)
                table.used[by.line[i] - 1u] = old.used[i], table.entries[by.line[i] - 1u] = old.entries[i];
        }
        for (unsigned i = 0; i < kLines; ++i)
            if (table.used[i])
                Entry::visit(table.entries[i], Renamer{by});
    });
}

/// Renames all of a state before its messages, controller by controller. Compares the result with `best`, if given, and
/// stops as soon as it is greater. Returns the order as memcmp does; 0 without `best`. `inverse`: the old number of a
/// controller by its new one.
template <class Machine>
int rename_front(typename Machine::State &to, typename Machine::State &from, const Renaming &by,
                 const std::uint8_t *inverse, const typename Machine::State *best) {
    using State = typename Machine::State;
    int order = 0;
    const bool least = Machine::each_controller([&](auto member, unsigned base, unsigned i) {
        auto &d = (to.*member)[i];
        d = (from.*member)[inverse[base + i] - base];
        rename_tables<Machine>(d, by);
        if (best && order == 0)
            order = std::memcmp(&d, &(best->*member)[i], sizeof d);
        return order <= 0;
    });
    if (!least)
        return order;
    const Renamer renamer{by};
    for (unsigned i = 0; i < State::kCores; ++i) {
        Core &c = to.cores[i];
        c = from.cores[inverse[Machine::kFirstCore + i] - Machine::kFirstCore];
        c.line = renamer.line_of(c.line);
    }
    for (unsigned i = State::kCores; i < std::size(to.cores); ++i) { // devices keep their names
        to.cores[i] = from.cores[i];
        to.cores[i].line = renamer.line_of(to.cores[i].line);
    }
    for (unsigned i = 0; i < State::kLines; ++i)
        to.memory[by.line[i] - 1] = from.memory[i];
    to.messages = from.messages;
    constexpr std::size_t kCores = offsetof(State, cores);
    if (best && order == 0)
        order = std::memcmp(to.cores, best->cores, offsetof(State, slots) - kCores);
    return order;
}

/// Renames and sorts the messages.
template <class State> void rename_messages(State &to, const State &from, const Renaming &by) {
    const Renamer renamer{by};
    for (unsigned i = 0; i < to.messages; ++i) {
        auto &m = to.slots[i] = from.slots[i];
        m.to = renamer.controller(m.to), m.from = renamer.controller(m.from);
        m.line = renamer.line_of(m.line), m.aside = renamer.line_of(m.aside);
        State::visit_body(m, Renamer{by});
    }
    sort_messages(to);
}

/// Makes a state canonical. The part before the messages already rules out most renamings.
template <class Machine> void make_canonical(typename Machine::State &s) {
    using State = typename Machine::State;
    constexpr std::size_t kFront = offsetof(State, slots);
    forget_old_values(s);
    sort_messages(s);
    if constexpr (std::size(Machine::kLineRenamings) * std::size(Machine::kRenamings) == 1)
        return;
    const std::size_t bytes = used_bytes(s);
    const auto &inverse = inverse_renamings<Machine>;
    State other[2];
    State *best = &s;
    unsigned spare = 0;
    for (const auto &line : Machine::kLineRenamings)
        for (std::size_t i = 0; i < inverse.size(); ++i) {
            if (&line == &Machine::kLineRenamings[0] && i == 0)
                continue; // the identity
            State &o = other[spare];
            const Renaming by{Machine::kRenamings[i], line};
            const int front = rename_front<Machine>(o, s, by, inverse[i].data(), best);
            if (front > 0)
                continue;
            rename_messages(o, s, by);
            if (front < 0 || std::memcmp(o.slots, best->slots, bytes - kFront) < 0) {
                best = &o;
                spare ^= 1;
            }
        }
    if (best != &s)
        std::memcpy(static_cast<void *>(&s), best, bytes);
}

} // namespace moscope::verify
