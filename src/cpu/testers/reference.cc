// SPDX-License-Identifier: BSD-3-Clause
// Layout of locations, numbering of writes, and the texts that explain violations.
#include "cpu/testers/reference.hh"

#include "base/time_text.hh"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <utility>

namespace moscope::testers {

std::string agent_name(Agent a) {
    if (a >= kFirstDevice)
        return "device " + std::to_string(a - kFirstDevice);
    return "core " + std::to_string(a);
}

const char *kind_name(AccessKind k) { return name_of(k); }

namespace {

std::string hex(std::uint64_t v) {
    char s[24];
    std::snprintf(s, sizeof s, "0x%llx", static_cast<unsigned long long>(v));
    return s;
}

} // namespace

Reference::Reference(const std::vector<Addr> &lines, unsigned locations_per_line, Rng &rng) {
    for (const Addr line : lines) {
        PoolLine p{line, size(), 0};
        // Naturally aligned places drawn until enough do not overlap; neighbours share words on purpose.
        std::uint64_t used = 0;
        for (unsigned tries = 0; p.count < locations_per_line && tries < 256; ++tries) {
            const unsigned bytes = 1u << rng.below(4);
            const unsigned offset = static_cast<unsigned>(rng.below(kLineBytes / bytes)) * bytes;
            const std::uint64_t mask = ((std::uint64_t{1} << bytes) - 1) << offset;
            if (used & mask)
                continue;
            used |= mask;
            // Never 0, so that no numbered value is 0, which is what memory holds at first.
            add_location(line + offset, bytes, rng.below(0xffffff) + 1);
            ++p.count;
        }
        lines_.push_back(p);
    }
    set_initial_values();
}

Reference::Reference(const std::vector<std::pair<Addr, unsigned>> &locations) {
    for (const auto &[addr, bytes] : locations) {
        if (lines_.empty() || lines_.back().addr != line_of(addr))
            lines_.push_back({line_of(addr), size(), 0});
        add_location(addr, bytes, (addr * 0x9e3779b97f4a7c15ull >> 40) | 1);
        locations_.back().line = static_cast<std::uint32_t>(lines_.size()) - 1;
        ++lines_.back().count;
    }
    set_initial_values();
}

void Reference::add_location(Addr addr, unsigned bytes, std::uint64_t tag) {
    Location l;
    l.addr = addr;
    l.size = static_cast<std::uint8_t>(bytes);
    l.line = static_cast<std::uint32_t>(lines_.size());
    l.tag = tag;
    locations_.push_back(l);
}

void Reference::set_initial_values() {
    slots_.resize(locations_.size() * kRemembered);
    for (unsigned i = 0; i < size(); ++i)
        slot(i, 0) = {0, 0, kNever, 0, 0, 0, AccessKind::store, kInitial};
}

std::uint64_t Reference::value_of(const Location &l, std::uint64_t number) {
    switch (l.size) {
    case 1: return number & 0xff;
    case 2: return ((l.tag % 63 + 1) << 10) | (number & 0x3ff);
    case 4: return ((l.tag % 4095 + 1) << 20) | (number & 0xfffff);
    default: return (l.tag << 40) | (number & 0xff'ffff'ffff);
    }
}

std::uint64_t Reference::get(const void *bytes, unsigned size) {
    std::uint64_t v = 0;
    std::memcpy(&v, bytes, size);
    return v;
}

std::uint64_t Reference::begin_write(unsigned i, Agent who, AccessKind kind, Tick now, bool distant, int access) {
    Location &l = locations_[i];
    const std::uint64_t v = value_of(l, l.next++);
    slot(i, v) = {v, distant ? now : kNever, kNever, now, kNever, who, kind, access};
    ++l.writing;
    l.distant += distant;
    return v;
}

void Reference::complete_write(unsigned i, std::uint64_t value, Tick now) {
    Location &l = locations_[i];
    Slot &s = slot(i, value);
    const bool distant = s.from != kNever;
    s.settled = now;
    // What was current before this write was issued (distant) or done is current no longer.
    const Tick before = distant ? s.issued : now;
    unsigned kept = 0;
    for (unsigned k = 0; k < l.open; ++k) {
        Slot &other = slot(i, l.values[k]);
        if (other.settled <= before)
            other.until = now;
        else
            l.values[kept++] = l.values[k];
    }
    if (!distant)
        s.from = now;
    l.values[kept++] = value;
    l.open = static_cast<std::uint8_t>(kept);
    --l.writing;
    l.distant -= distant;
}

std::vector<int> Reference::writers_between(unsigned i, Tick issued, Tick done) const {
    std::vector<const Slot *> right;
    for (unsigned k = 0; k < kRemembered; ++k)
        if (const Slot &s = slot(i, k); s.from <= done && s.until >= issued)
            right.push_back(&s);
    std::sort(right.begin(), right.end(), [](auto *a, auto *b) { return a->from > b->from; });
    std::vector<int> writers;
    writers.reserve(right.size());
    for (const Slot *s : right)
        writers.push_back(s->access);
    return writers;
}

std::string Reference::history_of(unsigned i, std::uint64_t value) const {
    const Slot &s = slot(i, value);
    if (s.value != value)
        return "which was not written here of late";
    std::string t;
    if (s.from == 0 && value == 0)
        t = "the initial value";
    else
        t = "written by " + agent_name(s.who) + " (" + kind_name(s.kind) + " issued at " + in_ns(s.issued) + ")";
    if (s.from == kNever)
        return t + ", not current yet";
    t += ", current from " + in_ns(s.from);
    return t + (s.until == kNever ? " on" : " to " + in_ns(s.until));
}

std::string Reference::explain(unsigned i, std::uint64_t value, Agent who, AccessKind kind, Tick issued,
                               Tick done) const {
    const Location &l = locations_[i];
    std::string t = agent_name(who) + ": " + kind_name(kind) + " of " + std::to_string(l.size) + " bytes at " +
                    hex(l.addr) + " (line " + hex(line_of(l.addr)) + "), " + in_ns(issued) + " to " + in_ns(done) +
                    ", found " + hex(value) + ", " + history_of(i, value) + "; expected ";
    std::vector<const Slot *> right;
    const Tick from = kind == AccessKind::rmw ? done : issued; // a locked operation reads at its completion
    for (unsigned k = 0; k < kRemembered; ++k) {
        const Slot &s = slot(i, k);
        if (s.from <= done && s.until >= from)
            right.push_back(&s);
    }
    std::sort(right.begin(), right.end(), [](auto *a, auto *b) { return a->from > b->from; });
    constexpr std::size_t kShown = 3;
    for (std::size_t k = 0; k < right.size() && k < kShown; ++k)
        t += (k ? " or " : "") + hex(right[k]->value) + " (" + history_of(i, right[k]->value) + ")";
    if (right.size() > kShown)
        t += " or " + std::to_string(right.size() - kShown) + " older ones";
    return t;
}

std::string Reference::explain_final(unsigned i, std::uint64_t value) const {
    const Location &l = locations_[i];
    return "at the end, " + std::to_string(l.size) + " bytes at " + hex(l.addr) + " (line " + hex(line_of(l.addr)) +
           ") hold " + hex(value) + ", " + history_of(i, value) + "; expected " + hex(l.values[0]) + ", " +
           history_of(i, l.values[0]);
}

} // namespace moscope::testers
