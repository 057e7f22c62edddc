// SPDX-License-Identifier: BSD-3-Clause
// Lines that a run treats otherwise than the machine would, to learn what they cost. The bytes stay where the guest has them; what
// changes is how the time of an access is found:
//
// - `free`: an access is a hit in the first-level cache, without the protocol.
// - else each byte belongs to a group, and the protocol sees a line of its own for each group, at an address that the guest does not
//   use. The home of that line may be another node's. An access that spans groups counts to the one of its first byte.
// - a page moves as a whole: the protocol sees the same line of another page, whose home is another node. What is said of a single
//   line comes first.
//
// Devices access the lines as before. The order of accesses is that of x86-TSO in each case, as bytes move in the order in which the
// engine performs accesses; with `free`, accesses of two cores may be performed as far apart from their simulated times as cores run
// ahead.
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
        std::array<std::uint8_t, kLineBytes> group{}; ///< of each byte
        std::vector<Addr> lines;                      ///< of each group
    };
    /// How an access takes place.
    struct Way {
        bool other = false; ///< than on the machine
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
    std::vector<bool> some_ = std::vector<bool>(0x10000); ///< by the low bits of the line's number
    std::unordered_map<Addr, Line> lines_;
    std::unordered_map<Addr, Addr> pages_;
};

} // namespace moscope
