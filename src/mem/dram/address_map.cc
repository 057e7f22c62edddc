// SPDX-License-Identifier: BSD-3-Clause
// Reads a mapping such as "row rank bank column channel". A field without a width takes the bits that the geometry
// gives it and that its other pieces leave over.
#include "mem/dram/address_map.hh"

#include <charconv>
#include <sstream>

#include "base/error.hh"

namespace moscope::dram {

namespace {

[[noreturn]] void bad(const std::string &wrong) {
    throw UserError("dram.mapping: " + wrong +
                    ": expected the fields row, rank, bank, column, channel from the most significant bit, as in "
                    "\"row rank bank column channel\" or \"row column:4 bank rank column channel\"");
}

unsigned bits_of(unsigned n) { return static_cast<unsigned>(std::bit_width(n) - 1); }

} // namespace

AddressMap::AddressMap(const DramParams &p) : bank_swizzle_(p.bank_swizzle), channel_hash_(p.channel_hash) {
    channel_.bits = bits_of(p.bus_channels());
    rank_.bits = bits_of(p.ranks);
    bank_.bits = bits_of(p.banks);
    row_.bits = bits_of(p.rows);
    column_.bits = bits_of(p.bus_row_bytes() / kLineBytes);
    if (channel_.bits == 0)
        channel_hash_ = false; // nothing to choose
    if (channel_hash_ && channel_.bits > 1)
        throw UserError("dram.channel_hash: needs exactly two channels: expected false");

    struct Token {
        Field *field;
        unsigned bits;
        bool given;
    };
    std::vector<Token> tokens;
    std::istringstream in(p.mapping);
    for (std::string word; in >> word;) {
        const auto colon = word.find(':');
        const std::string name = word.substr(0, colon);
        Field *f = name == "row"       ? &row_
                   : name == "rank"    ? &rank_
                   : name == "bank"    ? &bank_
                   : name == "column"  ? &column_
                   : name == "channel" ? &channel_
                                       : nullptr;
        if (!f)
            bad("unknown field \"" + name + "\"");
        Token t{f, 0, colon != std::string::npos};
        if (t.given) {
            const char *begin = word.data() + colon + 1, *end = word.data() + word.size();
            const auto [rest, error] = std::from_chars(begin, end, t.bits);
            if (error != std::errc{} || rest != end || t.bits == 0 || t.bits > 32)
                bad("\"" + word + "\" has no width");
        }
        if (++f->pieces > std::size(f->piece))
            bad("\"" + name + "\" is in more than four pieces");
        tokens.push_back(t);
    }
    for (Field *f : {&row_, &rank_, &bank_, &column_, &channel_}) {
        unsigned left = f->bits, open = 0;
        for (const Token &t : tokens)
            if (t.field == f) {
                open += !t.given;
                if (t.bits > left)
                    bad("a field has more bits than the geometry");
                left -= t.bits;
            }
        if (open > 1)
            bad("a field that is in pieces needs widths for all but one");
        if (left && !open)
            bad("a field is missing, or has fewer bits than the geometry");
        for (Token &t : tokens)
            if (t.field == f && !t.given)
                t.bits = left;
        f->pieces = 0;
    }
    // From the least significant end: the last piece of a field in the text holds its low bits.
    unsigned from = 0;
    unsigned filled[5] = {};
    Field *const order[5] = {&row_, &rank_, &bank_, &column_, &channel_};
    for (auto t = tokens.rbegin(); t != tokens.rend(); ++t) {
        unsigned i = 0;
        while (order[i] != t->field)
            ++i;
        t->field->piece[t->field->pieces++] = {from, filled[i],
                                               static_cast<unsigned>((std::uint64_t{1} << t->bits) - 1)};
        in_pieces_ |= t->field->pieces > 1;
        filled[i] += t->bits;
        from += t->bits;
    }
    // The hash must not change its own inputs, or two lines would have the same location.
    const unsigned at = channel_.pieces ? channel_.piece[0].from + kLineBits : 0;
    if (channel_hash_ && at >= 16 && at <= 20)
        throw UserError("dram.channel_hash: one of the hashed address bits, 16-20, also selects the channel: expected "
                        "a mapping with the channel elsewhere");
}

void AddressMap::add_pieces(Location &l, std::uint64_t line) const {
    const auto add = [line](const Field &f, unsigned &value) {
        for (unsigned i = 1; i < f.pieces; ++i)
            value |= f.piece[i](line) << f.piece[i].to;
    };
    add(channel_, l.channel);
    add(rank_, l.rank);
    add(bank_, l.bank);
    add(row_, l.row);
    add(column_, l.column);
}

} // namespace moscope::dram
