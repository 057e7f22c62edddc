// SPDX-License-Identifier: BSD-3-Clause
// Lines that a run treats otherwise than the machine would, to learn what they cost. The bytes stay where the guest has them; what
// changes is how the time of an access is found:
//
// - `free`: an access is a hit in the first-level cache, without the protocol.
// - else each byte belongs to a group, and the protocol sees a line of its own for each group, at an address that the guest does not
//   use. The home of that line may be another node's. An access that spans groups counts to the one of its first byte.
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
        Addr protocol_line(Addr at) const { return lines[group[line_offset(at)]]; }
    };

    void add(Addr line, Line how) {
        some_[index(line)] = true;
        lines_.insert_or_assign(line, std::move(how));
    }
    /// Null: as always.
    const Line *find(Addr line) const {
        if (!some_[index(line)])
            return nullptr;
        const auto found = lines_.find(line);
        return found == lines_.end() ? nullptr : &found->second;
    }
    /// What the protocol sees of an access at this address.
    Addr protocol_line(Addr at) const {
        const Line *other = find(line_of(at));
        return other && !other->free ? other->protocol_line(at) : line_of(at);
    }
    bool any_free() const {
        for (const auto &[line, how] : lines_)
            if (how.free)
                return true;
        return false;
    }

  private:
    static std::size_t index(Addr line) { return (line >> kLineBits) & 0xffff; }
    std::vector<bool> some_ = std::vector<bool>(0x10000); ///< by the low bits of the line's number
    std::unordered_map<Addr, Line> lines_;
};

} // namespace moscope
