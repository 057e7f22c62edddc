// SPDX-License-Identifier: BSD-3-Clause
#include "net/postgresql/messages.hh"

#include <algorithm>

namespace moscope::net::postgresql {

namespace {

constexpr std::uint32_t kVersion = 3 << 16;
constexpr std::size_t kTypeAndLength = 5;

std::string big_endian(std::uint32_t v) {
    std::string s;
    for (int shift = 24; shift >= 0; shift -= 8)
        s.push_back(static_cast<char>(v >> shift & 255));
    return s;
}

/// The length includes its own four bytes but not the type.
std::string with_length(const std::string &body) {
    return big_endian(static_cast<std::uint32_t>(body.size() + 4)) + body;
}

} // namespace

std::string startup_message(std::string_view user, std::string_view database) {
    std::string body = big_endian(kVersion);
    for (const std::string_view text : {std::string_view("user"), user, std::string_view("database"), database}) {
        body += text;
        body.push_back('\0');
    }
    body.push_back('\0');
    return with_length(body);
}

std::string query_message(std::string_view statements) {
    std::string body(statements);
    body.push_back('\0');
    return "Q" + with_length(body);
}

std::string terminate_message() { return "X" + with_length(""); }

void Reader::put(Bytes b) {
    bytes_.erase(bytes_.begin(), bytes_.begin() + static_cast<std::ptrdiff_t>(at_));
    at_ = 0;
    bytes_.insert(bytes_.end(), b.begin(), b.end());
}

bool Reader::get(Message &m) {
    const Bytes left = Bytes(bytes_).subspan(at_);
    if (broken_ || left.size() < kTypeAndLength)
        return false;
    const std::uint32_t length = get32(left, 1);
    if (length < 4 || length > kLongest) {
        broken_ = true;
        return false;
    }
    if (left.size() < length + 1)
        return false;
    m = {static_cast<char>(left[0]), left.subspan(kTypeAndLength, length - 4)};
    at_ += length + 1;
    return true;
}

std::string_view text_at(Bytes body, std::size_t &at) {
    const std::size_t begin = std::min(at, body.size());
    const auto end = std::find(body.begin() + static_cast<std::ptrdiff_t>(begin), body.end(), 0);
    const auto size = static_cast<std::size_t>(end - body.begin()) - begin;
    at = begin + size + 1;
    return {reinterpret_cast<const char *>(body.data()) + begin, size};
}

std::string_view error_field(Bytes body, char type) {
    std::size_t at = 0;
    while (at < body.size() && body[at] != 0) {
        const char found = static_cast<char>(body[at++]);
        const std::string_view text = text_at(body, at);
        if (found == type)
            return text;
    }
    return {};
}

std::string_view only_value(Bytes body) {
    constexpr std::size_t kHeader = 6; // number of columns, length of the value
    if (body.size() <= kHeader || get16(body, 0) != 1 || get32(body, 2) != body.size() - kHeader)
        return {};
    return {reinterpret_cast<const char *>(body.data()) + kHeader, body.size() - kHeader};
}

} // namespace moscope::net::postgresql
