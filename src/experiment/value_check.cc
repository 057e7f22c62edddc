// SPDX-License-Identifier: BSD-3-Clause
#include "experiment/value_check.hh"

#include <algorithm>
#include <array>
#include <cstring>

#include "experiment/access_json.hh"

namespace moscope::experiment {

using testers::Reference;

namespace {

constexpr unsigned kNowhere = ~0u; // a flush

bool reads(AccessKind k) {
    return k == AccessKind::load || k == AccessKind::fetch || k == AccessKind::uncached_load || k == AccessKind::rmw;
}
bool writes(AccessKind k) { return k == AccessKind::store || k == AccessKind::nt_store || k == AccessKind::rmw; }

} // namespace

bool ValueCheck::whole_line(unsigned n) const { return accesses_[n].size == kLineBytes; }

/// Whether the write goes to memory: its value becomes current at an unknown moment before the access is done.
bool ValueCheck::distant(unsigned n) const {
    const Planned &a = accesses_[n];
    return a.kind == AccessKind::nt_store || (a.kind == AccessKind::store && a.who >= testers::kFirstDevice);
}

ValueCheck::ValueCheck(const std::vector<Planned> &accesses)
    : accesses_(accesses),
      place_(accesses.size(), kNowhere),
      value_(accesses.size()),
      found_(accesses.size()),
      began_(accesses.size(), kNever) {
    std::vector<std::pair<Addr, unsigned>> places;
    for (unsigned n = 0; n < accesses_.size(); ++n)
        if (accesses_[n].kind != AccessKind::flush && !whole_line(n))
            places.emplace_back(accesses_[n].addr, accesses_[n].size);
    std::sort(places.begin(), places.end());
    places.erase(std::unique(places.begin(), places.end()), places.end());
    for (std::size_t i = 1; i < places.size(); ++i)
        if (places[i - 1].first + places[i - 1].second > places[i].first)
            throw UserError("script: accesses to " + hex(places[i - 1].first) + " and " + hex(places[i].first) +
                            " overlap: expected identical or disjoint bytes where values are checked");
    // A line that is only written as a whole has one place, its first bytes.
    const auto has_place = [&](Addr line) {
        const auto p = std::lower_bound(places.begin(), places.end(), std::pair(line, 0u));
        return p != places.end() && line_of(p->first) == line;
    };
    for (unsigned n = 0; n < accesses_.size(); ++n)
        if (accesses_[n].kind != AccessKind::flush && whole_line(n) && !has_place(line_of(accesses_[n].addr)))
            places.insert(std::lower_bound(places.begin(), places.end(), std::pair(line_of(accesses_[n].addr), 0u)),
                          {line_of(accesses_[n].addr), 8});
    ref_.emplace(places);
    for (unsigned n = 0; n < accesses_.size(); ++n) {
        if (accesses_[n].kind == AccessKind::flush)
            continue;
        const auto at = std::lower_bound(places.begin(), places.end(), std::pair(accesses_[n].addr, 0u));
        place_[n] = static_cast<unsigned>(at - places.begin());
    }
}

bool ValueCheck::can_write(unsigned place) {
    if (ref_->can_write(place, known_oldest_))
        return true;
    known_oldest_ = *std::min_element(began_.begin(), began_.end());
    return ref_->can_write(place, known_oldest_);
}

bool ValueCheck::begin(unsigned n, Tick now, std::byte *bytes) {
    const Planned &a = accesses_[n];
    began_[n] = now;
    if (!writes(a.kind))
        return true;
    std::memset(bytes, 0, kLineBytes);
    if (!whole_line(n)) {
        if (!can_write(place_[n]))
            return false;
        value_[n] = ref_->begin_write(place_[n], a.who, a.kind, now, distant(n), static_cast<int>(n));
        std::memcpy(bytes, &value_[n], ref_->at(place_[n]).size);
        return true;
    }
    const auto &line = line_of_write(n);
    for (unsigned k = line.first; k < line.first + line.count; ++k)
        if (!can_write(k))
            return false;
    for (unsigned k = line.first; k < line.first + line.count; ++k) {
        const std::uint64_t v = ref_->begin_write(k, a.who, a.kind, now, true, static_cast<int>(n));
        std::memcpy(bytes + line_offset(ref_->at(k).addr), &v, ref_->at(k).size);
    }
    return true;
}

void ValueCheck::note(unsigned n, std::uint64_t value, Tick issued, Tick done, bool right) {
    const unsigned place = place_[n];
    found_[n] = ref_->writer_of(place, value);
    if (right)
        return;
    const Planned &a = accesses_[n];
    violations_.push_back(
        {{"access", n},
         {"text", ref_->explain(place, value, a.who, a.kind, issued, done)},
         {"found", *found_[n]},
         {"expected", ref_->writers_between(place, a.kind == AccessKind::rmw ? done : issued, done)}});
}

void ValueCheck::modify(unsigned n, void *bytes, Tick issued, Tick now) {
    const unsigned size = ref_->at(place_[n]).size;
    const std::uint64_t found = Reference::get(bytes, size);
    note(n, found, issued, now, ref_->may_be_current(place_[n], found, now));
    std::memcpy(bytes, &value_[n], size);
}

void ValueCheck::done(unsigned n, const Access &a, const std::byte *bytes) {
    began_[n] = kNever;
    const AccessKind kind = accesses_[n].kind;
    if (reads(kind) && kind != AccessKind::rmw && !whole_line(n)) {
        const std::uint64_t found = Reference::get(bytes, a.size);
        note(n, found, a.issued, a.done, ref_->load_ok(place_[n], found, a.issued, a.done));
    }
    if (!writes(kind))
        return;
    if (!whole_line(n)) {
        ref_->complete_write(place_[n], value_[n], a.done);
        return;
    }
    const auto &line = line_of_write(n);
    for (unsigned k = line.first; k < line.first + line.count; ++k) {
        const testers::Location &l = ref_->at(k);
        ref_->complete_write(k, Reference::get(bytes + line_offset(l.addr), l.size), a.done);
    }
}

void ValueCheck::check_end(Machine &machine) {
    if (const std::string wrong = machine.check_single_writer(); !wrong.empty())
        violations_.push_back({{"access", nullptr},
                               {"text", "at the end, more than one copy where one is writable: " + wrong},
                               {"found", nullptr},
                               {"expected", Json::array()}});
    std::array<std::byte, kLineBytes> bytes;
    for (const auto &line : ref_->lines()) {
        if (!machine.functional_read(line.addr, bytes.data()))
            continue;
        for (unsigned k = line.first; k < line.first + line.count; ++k) {
            const testers::Location &l = ref_->at(k);
            const std::uint64_t value = Reference::get(&bytes[line_offset(l.addr)], l.size);
            if (!ref_->may_be_current(k, value, machine.now()))
                violations_.push_back({{"access", nullptr},
                                       {"text", ref_->explain_final(k, value)},
                                       {"found", ref_->writer_of(k, value)},
                                       {"expected", ref_->writers_between(k, machine.now(), machine.now())}});
        }
    }
}

} // namespace moscope::experiment
