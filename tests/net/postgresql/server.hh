// SPDX-License-Identifier: BSD-3-Clause
// What a PostgreSQL server would send, made from what a client sent (PostgreSQL 15 documentation, chapter 55), for tests.
#pragma once

#include <charconv>
#include <functional>
#include <string>
#include <string_view>

#include "net/frame.hh"

namespace moscope::net::postgresql {

inline std::string be32(std::size_t v) {
    std::string s;
    for (int shift = 24; shift >= 0; shift -= 8)
        s.push_back(static_cast<char>(v >> shift & 255));
    return s;
}
inline std::string message(char type, const std::string &body) { return type + be32(body.size() + 4) + body; }
inline std::string zero(const std::string &text) { return text + std::string(1, '\0'); }
inline std::string ready(char status) { return message('Z', std::string(1, status)); }
inline std::string tag(const std::string &text) { return message('C', zero(text)); }
inline std::string row(const std::string &value) {
    return message('D', std::string("\0\1", 2) + be32(value.size()) + value);
}
inline std::string description() {
    return message('T', std::string("\0\1", 2) + zero("v") + be32(16384) + std::string("\0\2", 2) + be32(23) +
                            std::string("\0\4", 2) + be32(0xffffffff) + std::string("\0\0", 2));
}
inline std::string error(const std::string &code, const std::string &text) {
    return message('E', zero("SERROR") + zero("C" + code) + zero("M" + text) + std::string(1, '\0'));
}
inline std::string greeting() {
    return message('R', be32(0)) + message('S', zero("server_version") + zero("15.0")) +
           message('K', be32(7) + be32(9)) + ready('I');
}

/// A server with the right rows; `spoil` may change the answer to a statement.
struct Server {
    std::string given;
    bool greeted = false;
    unsigned queries = 0, prewarms = 0, selects = 0, updates = 0, begins = 0, commits = 0, rollbacks = 0;
    bool terminated = false;
    std::function<std::string(std::string_view statement, std::string right)> spoil;

    /// The answer to what came, as far as it is whole.
    std::string take(Bytes bytes) {
        given.append(bytes.begin(), bytes.end());
        std::string out;
        while (true) {
            const std::size_t type = greeted ? 1 : 0;
            if (given.size() < type + 4)
                return out;
            const std::size_t length =
                get32({reinterpret_cast<const std::uint8_t *>(given.data()), given.size()}, type);
            if (given.size() < type + length)
                return out;
            const std::string body = given.substr(type + 4, length - 4);
            const char kind = greeted ? given[0] : 'S';
            given.erase(0, type + length);
            if (!greeted) {
                greeted = true;
                out += greeting();
            } else if (kind == 'X') {
                terminated = true;
            } else {
                ++queries;
                out += answers(body.substr(0, body.size() - 1));
            }
        }
    }

  private:
    std::string answers(const std::string &text) {
        std::string out;
        if (text.find("RESET ALL") != std::string::npos) {
            prewarms += text.find("pg_prewarm") != std::string::npos;
            return description() + row("1") + tag("SELECT 1") + tag("SET") + tag("RESET") + ready('I');
        }
        for (std::size_t at = 0; at < text.size();) {
            const std::size_t end = std::min(text.find(';', at), text.size());
            const std::string statement = text.substr(at, end - at), right = answer(statement);
            const std::string given_answer = spoil ? spoil(statement, right) : right;
            out += given_answer;
            if (given_answer.starts_with('E'))
                return out + ready('E');
            at = end + 1;
        }
        return out + ready('T');
    }
    std::string answer(const std::string &statement) {
        const std::size_t key = statement.rfind("k = ");
        const auto counted = [&](unsigned &n, const std::string &answer) {
            ++n;
            return answer;
        };
        if (statement.starts_with("BEGIN"))
            return counted(begins, tag("BEGIN"));
        if (statement == "COMMIT")
            return counted(commits, tag("COMMIT"));
        if (statement == "ROLLBACK")
            return counted(rollbacks, tag("ROLLBACK"));
        if (statement.starts_with("UPDATE"))
            return counted(updates, tag("UPDATE 1"));
        std::uint64_t k = 0;
        std::from_chars(statement.data() + key + 4, statement.data() + statement.size(), k);
        const std::uint64_t v = k * 2654435761u % (std::uint64_t{1} << 31); // as the table is made
        return counted(selects, description() + row(std::to_string(v)) + tag("SELECT 1"));
    }
};

} // namespace moscope::net::postgresql
