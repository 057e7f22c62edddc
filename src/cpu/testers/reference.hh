// SPDX-License-Identifier: BSD-3-Clause
// The values that memory may hold: the reference that the random tester checks loads against. A location is 1 to 8
// bytes of a line; every write to it carries a value that is unique among the recent ones, so that a value read names
// its write. A load is right if its value was current at some moment between its issue and its completion
// (design, decision 5). Ticks are femtoseconds.
//
// A store or a locked read-modify-write becomes current at its completion, when its bytes are written. A write
// that travels to memory (non-temporal store, device write: here a distant write) becomes current at an unknown
// moment between issue and completion. Where it overlaps other writes, several values may be current until the
// next write that certainly comes after them.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/rng.hh"
#include "base/types.hh"
#include "mem/port.hh"

namespace moscope::testers {

/// A reader's or writer's name in reports: cores count from 0, devices from kFirstDevice.
using Agent = std::uint16_t;
inline constexpr Agent kFirstDevice = 0x8000;
std::string agent_name(Agent a);
const char *kind_name(AccessKind k);

struct Location {
    Addr addr = 0;
    std::uint8_t size = 0;     ///< bytes: 1, 2, 4 or 8
    std::uint32_t line = 0;    ///< index into the pool of lines
    std::uint64_t tag = 0;     ///< high bits of all values of wide locations: show data of another place
    std::uint64_t next = 1;    ///< number of the next write
    std::uint16_t writing = 0; ///< writes in flight
    std::uint8_t distant = 0;  ///< distant ones among them
    std::uint8_t open = 1;     ///< finished writes that may be the current one; the first entries of `values`
    std::array<std::uint64_t, 8> values{};
};

class Reference {
  public:
    static constexpr unsigned kRemembered = 256; ///< writes per location

    struct PoolLine {
        Addr addr;
        std::uint32_t first, count; ///< its locations
    };

    /// Chooses locations in each line; memory is all zeros.
    Reference(const std::vector<Addr> &lines, unsigned locations_per_line, Rng &rng);
    /// These locations (address, bytes), sorted by address and without overlap.
    explicit Reference(const std::vector<std::pair<Addr, unsigned>> &locations);

    unsigned size() const { return static_cast<unsigned>(locations_.size()); }
    const Location &at(unsigned i) const { return locations_[i]; }
    const std::vector<PoolLine> &lines() const { return lines_; }

    /// Whether a new write can take a value that is unique among those that accesses in flight since `oldest` may read.
    bool can_write(unsigned i, Tick oldest) const {
        const Location &l = locations_[i];
        return l.open + l.distant < l.values.size() && slot(i, l.next).until < oldest;
    }
    bool being_written(unsigned i) const { return locations_[i].writing != 0; }

    /// Begins a write and returns its value. `access`: its number, for `writer_of`.
    std::uint64_t begin_write(unsigned i, Agent who, AccessKind kind, Tick now, bool distant, int access = kInitial);
    /// The write of `value` is done. One that is not distant becomes current now.
    void complete_write(unsigned i, std::uint64_t value, Tick now);

    /// Whether a load between issued and done may have returned value.
    bool load_ok(unsigned i, std::uint64_t value, Tick issued, Tick done) const {
        const Slot &s = slot(i, value);
        return s.value == value && s.from <= done && s.until >= issued;
    }
    /// Whether a locked operation may find `value` now.
    bool may_be_current(unsigned i, std::uint64_t value, Tick now) const {
        return load_ok(i, value, now, now) && slot(i, value).until == kNever;
    }

    /// Numbers that stand for writers of values that no access wrote.
    static constexpr int kInitial = -1, kNoAccess = -2;
    /// The access that wrote a value of location i: kInitial for what memory holds at first, kNoAccess for a value that
    /// was not written there.
    int writer_of(unsigned i, std::uint64_t value) const {
        const Slot &s = slot(i, value);
        return s.value == value ? s.access : kNoAccess;
    }
    /// Writers of the values that a load between these ticks may return, the latest first.
    std::vector<int> writers_between(unsigned i, Tick issued, Tick done) const;

    /// One line of text: the value read, its writer and time, and the values expected.
    std::string explain(unsigned i, std::uint64_t value, Agent who, AccessKind kind, Tick issued, Tick done) const;
    /// As explain, for the value found at the end of a run.
    std::string explain_final(unsigned i, std::uint64_t value) const;

    static std::uint64_t get(const void *bytes, unsigned size);

  private:
    struct Slot {
        std::uint64_t value = ~std::uint64_t{0};
        Tick from = kNever, until = -1; ///< observable
        Tick issued = 0;
        Tick settled = kNever; ///< current at this time at the latest
        Agent who = 0;
        AccessKind kind = AccessKind::store;
        int access = kInitial;
    };
    void add_location(Addr addr, unsigned bytes, std::uint64_t tag);
    void set_initial_values();
    const Slot &slot(unsigned i, std::uint64_t value) const {
        return slots_[std::size_t{i} * kRemembered + (value & (kRemembered - 1))];
    }
    Slot &slot(unsigned i, std::uint64_t value) {
        return slots_[std::size_t{i} * kRemembered + (value & (kRemembered - 1))];
    }
    static std::uint64_t value_of(const Location &l, std::uint64_t number);
    std::string history_of(unsigned i, std::uint64_t value) const;

    std::vector<Location> locations_;
    std::vector<PoolLine> lines_;
    std::vector<Slot> slots_;
};

} // namespace moscope::testers
