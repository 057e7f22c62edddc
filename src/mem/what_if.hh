// SPDX-License-Identifier: BSD-3-Clause
// The lines that a what-if run treats differently from the machine, to measure what they cost. Their bytes stay where
// the guest has them; what changes is how the time of an access is determined:
//
// - `free`: an access to the line is a hit in the first-level cache; the protocol is not involved.
// - Any other line: each of its bytes belongs to a group, and the protocol sees a separate line for each group, at an
//   address that the guest does not use. The home of that line may be another node. An access that spans groups counts
//   for the group of its first byte.
// - A page moves as a whole: the protocol sees the same line of another page, whose home is another node. A rule for a
//   single line takes precedence.
//
// Devices access the lines as before. Accesses keep the order of x86-TSO in each case, because bytes move in the order
// in which the engine performs accesses. With `free`, accesses of two cores may be performed out of the order of
// simulated time, by as much as cores run ahead.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "base/types.hh"

namespace moscope {

class WhatIf {
  public:
    struct Line {
        bool free = false;
        std::array<std::uint8_t, kLineBytes> group{}; ///< by byte
        std::vector<Addr> lines;                      ///< by group: the line that the protocol sees
    };
    /// How an access takes place.
    struct Way {
        bool other = false; ///< differently from the machine
        bool free = false;
        Addr line; ///< what the protocol sees
    };

    void add(Addr line, Line how) {
        some_[index(line)] = true;
        lines_.insert_or_assign(line, std::move(how));
    }
    void add_page(Addr page, Addr instead) {
        for (Addr line = page; line < page + kPageBytes; line += kLineBytes)
            some_[index(line)] = true;
        pages_.insert_or_assign(page, instead);
    }

    Way way(Addr at) const {
        const Addr line = line_of(at);
        if (!some_[index(line)])
            return {false, false, line};
        if (const auto found = lines_.find(line); found != lines_.end()) {
            const Line &how = found->second;
            return {true, how.free, how.free ? line : how.lines[how.group[line_offset(at)]]};
        }
        const auto page = pages_.find(at & ~(kPageBytes - 1));
        return page == pages_.end() ? Way{false, false, line}
                                    : Way{true, false, page->second + (line & (kPageBytes - 1))};
    }
    bool any_free() const {
        for (const auto &[line, how] : lines_)
            if (how.free)
                return true;
        return false;
    }

    static constexpr Addr kPageBytes = 4096;

  private:
    static std::size_t index(Addr line) { return (line >> kLineBits) & 0xffff; }
    std::vector<bool> some_ = std::vector<bool>(0x10000); ///< by the low bits of the line's number: some line is here
    std::unordered_map<Addr, Line> lines_;
    std::unordered_map<Addr, Addr> pages_;
};

} // namespace moscope
