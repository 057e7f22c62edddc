// SPDX-License-Identifier: BSD-3-Clause
#include "dev/firmware/aml.hh"

#include <string>

#include "base/error.hh"

namespace moscope::dev::aml {

namespace {

// Op codes (section 19.2, table 19-4).
enum Op : std::uint8_t {
    kZero = 0x00,
    kOne = 0x01,
    kName = 0x08,
    kByte = 0x0a,
    kWord = 0x0b,
    kDword = 0x0c,
    kString = 0x0d,
    kQword = 0x0e,
    kScope = 0x10,
    kBuffer = 0x11,
    kPackage = 0x12,
    kMethod = 0x14,
    kDualName = 0x2e,
    kMultiName = 0x2f,
    kExtended = 0x5b,
    kDevice = 0x82, // after kExtended
    kReturn = 0xa4,
};

void put(Bytes &to, const Bytes &from) { to.insert(to.end(), from.begin(), from.end()); }

void put_le(Bytes &to, std::uint64_t value, unsigned size) {
    for (unsigned i = 0; i < size; ++i)
        to.push_back(static_cast<std::uint8_t>(value >> (8 * i)));
}

// PkgLength counts itself: one byte up to 63, else a lead byte with the low four bits and one to three more.
Bytes with_length(const Bytes &content) {
    Bytes out;
    std::size_t n = content.size() + 1;
    if (n < 64) {
        out.push_back(static_cast<std::uint8_t>(n));
    } else {
        unsigned more = 1;
        while (content.size() + 1 + more >= std::size_t{1} << (4 + 8 * more))
            ++more;
        MOSCOPE_CHECK(more <= 3);
        n = content.size() + 1 + more;
        out.push_back(static_cast<std::uint8_t>(more << 6 | (n & 15)));
        put_le(out, n >> 4, more);
    }
    put(out, content);
    return out;
}

Bytes all(const Terms &terms) {
    Bytes out;
    for (const Bytes &t : terms)
        put(out, t);
    return out;
}

Bytes block(std::initializer_list<std::uint8_t> op, const Bytes &content) {
    Bytes out(op);
    put(out, with_length(content));
    return out;
}

} // namespace

Bytes path(std::string_view text) {
    const auto refuse = [&] {
        throw UserError("firmware: \"" + std::string(text) +
                        "\" is not an ACPI name: expected segments of at most four of A-Z, 0-9 and _");
    };
    Bytes out;
    while (!text.empty() && (text[0] == '\\' || text[0] == '^')) {
        out.push_back(static_cast<std::uint8_t>(text[0]));
        text.remove_prefix(1);
    }
    Terms segments;
    while (!text.empty()) {
        const std::string_view s = text.substr(0, text.find('.'));
        text.remove_prefix(std::min(text.size(), s.size() + 1));
        if (s.empty() || s.size() > 4 || (s[0] >= '0' && s[0] <= '9'))
            refuse();
        Bytes segment;
        for (const char c : s) {
            if (!((c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_'))
                refuse();
            segment.push_back(static_cast<std::uint8_t>(c));
        }
        segment.resize(4, '_');
        segments.push_back(segment);
    }
    if (segments.size() > 255)
        refuse();
    if (segments.empty())
        out.push_back(0); // the null name
    else if (segments.size() == 2)
        out.push_back(kDualName);
    else if (segments.size() > 2) {
        out.push_back(kMultiName);
        out.push_back(static_cast<std::uint8_t>(segments.size()));
    }
    put(out, all(segments));
    return out;
}

Bytes integer(std::uint64_t value) {
    if (value <= 1)
        return {value ? kOne : kZero};
    Bytes out;
    const unsigned size = value < 1u << 8 ? 1 : value < 1u << 16 ? 2 : value >> 32 == 0 ? 4 : 8;
    out.push_back(size == 1 ? kByte : size == 2 ? kWord : size == 4 ? kDword : kQword);
    put_le(out, value, size);
    return out;
}

Bytes string(std::string_view text) {
    Bytes out;
    out.reserve(text.size() + 2); // also keeps GCC 12 from a false warning about the copy when it grows
    out.push_back(kString);
    out.insert(out.end(), text.begin(), text.end());
    out.push_back(0);
    return out;
}

Bytes eisa_id(std::string_view id) {
    const auto hex = [](char c) -> unsigned {
        return c >= '0' && c <= '9' ? static_cast<unsigned>(c - '0') : static_cast<unsigned>(c - 'A' + 10);
    };
    MOSCOPE_CHECK(id.size() == 7);
    std::uint32_t v = 0; // three letters of five bits, four hexadecimal digits, most significant byte first
    for (unsigned i = 0; i < 3; ++i)
        v = v << 5 | (static_cast<std::uint32_t>(id[i] - '@') & 31);
    for (unsigned i = 3; i < 7; ++i)
        v = v << 4 | hex(id[i]);
    Bytes out{kDword};
    put_le(out, __builtin_bswap32(v), 4);
    return out;
}

Bytes buffer(const Bytes &content) {
    Bytes inside = integer(content.size());
    put(inside, content);
    return block({kBuffer}, inside);
}

Bytes package(const Terms &elements) {
    MOSCOPE_CHECK(elements.size() <= 255);
    Bytes inside{static_cast<std::uint8_t>(elements.size())};
    put(inside, all(elements));
    return block({kPackage}, inside);
}

Bytes name(std::string_view where, const Bytes &value) {
    Bytes out{kName};
    put(out, path(where));
    put(out, value);
    return out;
}

namespace {
Bytes named(std::initializer_list<std::uint8_t> op, std::string_view where, const Bytes &between, const Terms &terms) {
    Bytes inside = path(where);
    put(inside, between);
    put(inside, all(terms));
    return block(op, inside);
}
} // namespace

Bytes scope(std::string_view where, const Terms &terms) { return named({kScope}, where, {}, terms); }
Bytes device(std::string_view where, const Terms &terms) { return named({kExtended, kDevice}, where, {}, terms); }

Bytes method(std::string_view where, unsigned arguments, const Terms &terms) {
    MOSCOPE_CHECK(arguments <= 7);
    return named({kMethod}, where, {static_cast<std::uint8_t>(arguments)}, terms);
}

Bytes return_value(const Bytes &value) {
    Bytes out;
    out.reserve(value.size() + 1);
    out.push_back(kReturn);
    put(out, value);
    return out;
}

Resources &Resources::io(std::uint16_t base, std::uint8_t size) {
    put(bytes_, {0x47, 1});
    put_le(bytes_, base, 2);
    put_le(bytes_, base, 2);
    put(bytes_, {1, size});
    return *this;
}

Resources &Resources::irq(unsigned line, bool level, bool active_low) {
    MOSCOPE_CHECK(line < 16);
    bytes_.push_back(0x23);
    put_le(bytes_, 1u << line, 2);
    bytes_.push_back(static_cast<std::uint8_t>((level ? 0 : 1) | (active_low ? 8 : 0)));
    return *this;
}

Resources &Resources::memory32(std::uint32_t base, std::uint32_t size) {
    put(bytes_, {0x86, 9, 0, 1});
    put_le(bytes_, base, 4);
    put_le(bytes_, size, 4);
    return *this;
}

namespace {
enum class Space : std::uint8_t { memory = 0, io = 1, bus = 2 };

// Address space descriptors: word 88h, dword 87h, qword 8Ah (section 6.4.3.5). Minimum, maximum and length fixed.
void window(Bytes &to, Space space, std::uint8_t flags, std::uint64_t first, std::uint64_t last, unsigned width) {
    to.push_back(width == 2 ? 0x88 : width == 4 ? 0x87 : 0x8a);
    put_le(to, 3 + 5 * width, 2);
    put(to, {static_cast<std::uint8_t>(space), 0x0c, flags}); // producer, positive decode, both ends fixed
    for (const std::uint64_t field : {std::uint64_t{0}, first, last, std::uint64_t{0}, last - first + 1})
        put_le(to, field, width);
}
} // namespace

Resources &Resources::bus_numbers(unsigned first, unsigned last) {
    window(bytes_, Space::bus, 0, first, last, 2);
    return *this;
}

Resources &Resources::port_window(std::uint16_t first, std::uint16_t last) {
    window(bytes_, Space::io, 3, first, last, 2); // ISA and non-ISA ranges
    return *this;
}

Resources &Resources::memory_window(Addr base, std::uint64_t size, bool cacheable) {
    const unsigned width = (base + size - 1) >> 32 ? 8 : 4;
    window(bytes_, Space::memory, cacheable ? 3 : 1, base, base + size - 1, width);
    return *this;
}

Bytes Resources::bytes() const {
    Bytes out = bytes_;
    put(out, {0x79, 0}); // end tag; checksum 0: none
    return buffer(out);
}

} // namespace moscope::dev::aml
