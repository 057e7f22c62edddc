// SPDX-License-Identifier: BSD-3-Clause
// The DRAM location of a line: channel, rank, bank, row and column of an address, by a mapping given as text (fields
// from the most significant bit). Two options of family 10h (AMD 31116): bank swizzling XORs the bank with low row
// bits, so that power-of-two strides spread over banks; the channel hash XORs the channel-select bit with the
// parity of address bits 16-20. Both permute the lines of the node: no two addresses share a location.
#pragma once

#include <bit>
#include <string>
#include <vector>

#include "mem/dram/params.hh"

namespace moscope::dram {

struct Location {
    unsigned channel = 0;
    unsigned rank = 0;
    unsigned bank = 0;
    unsigned row = 0;
    unsigned column = 0; ///< in lines

    bool operator==(const Location &) const = default;
};

class AddressMap {
  public:
    /// Throws UserError if p.mapping is not one of this geometry.
    explicit AddressMap(const DramParams &p);

    Location operator()(Addr a) const {
        const std::uint64_t line = a >> kLineBits;
        Location l{channel_.piece[0](line), rank_.piece[0](line), bank_.piece[0](line), row_.piece[0](line),
                   column_.piece[0](line)};
        if (__builtin_expect(in_pieces_, 0))
            add_pieces(l, line);
        if (bank_swizzle_)
            l.bank ^= (l.row ^ (l.row >> bank_.bits)) & ((1u << bank_.bits) - 1);
        if (channel_hash_)
            l.channel ^= std::popcount(static_cast<unsigned>(a >> 16) & 0x1fu) & 1;
        return l;
    }

  private:
    struct Piece {
        unsigned from, to; ///< lowest bit of the line address, lowest bit of the field
        unsigned mask;     ///< of the width

        unsigned operator()(std::uint64_t line) const { return static_cast<unsigned>(line >> from) & mask; }
    };
    struct Field {
        unsigned bits = 0;
        unsigned pieces = 0;
        Piece piece[4] = {}; ///< lowest bits of the field first; without pieces, the first one yields 0
    };
    void add_pieces(Location &l, std::uint64_t line) const;

    Field channel_, rank_, bank_, row_, column_;
    bool bank_swizzle_, channel_hash_;
    bool in_pieces_ = false; ///< some field has several pieces: add_pieces() adds all but the first
};

} // namespace moscope::dram
