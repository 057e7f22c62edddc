// SPDX-License-Identifier: BSD-3-Clause
// Messages of PostgreSQL's frontend/backend protocol, version 3.0 (PostgreSQL 15 documentation, chapter 55): those that
// a client with trusted authentication and the simple query protocol sends, and a reader that splits what the server
// sends into messages.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "net/frame.hh"

namespace moscope::net::postgresql {

/// The start-up message (sections 55.2.1 and 55.7): version 3.0, the user, the database.
std::string startup_message(std::string_view user, std::string_view database);
/// One or more statements, with semicolons between them.
std::string query_message(std::string_view statements);
std::string terminate_message();

/// A message from the server. `body` points into the reader, until its next use.
struct Message {
    char type = 0;
    Bytes body;
};

/// Splits a stream of bytes into messages. Bytes may come in any pieces.
class Reader {
  public:
    /// Bytes. No answer to what this client asks is longer, so a longer message breaks the stream.
    static constexpr std::uint32_t kLongest = 65536;

    void put(Bytes);
    /// Whether there is a whole message; it is then in `m`.
    bool get(Message &m);
    /// The bytes received are not a sequence of messages. This is final.
    bool broken() const { return broken_; }
    void archive(Archive &a) { a(bytes_, at_, broken_); }

  private:
    std::vector<std::uint8_t> bytes_;
    std::uint64_t at_ = 0; ///< the first byte that belongs to no message yet
    bool broken_ = false;
};

/// The bytes from `at` to the next zero; `at` moves past it. Without a zero: all bytes that are left.
std::string_view text_at(Bytes body, std::size_t &at);
/// A field of an ErrorResponse, by its type (section 55.8): 'C' is the SQLSTATE, 'M' the text. Empty: absent.
std::string_view error_field(Bytes body, char type);
/// The value of a DataRow of one column that is not null. Empty: it is something else.
std::string_view only_value(Bytes body);

} // namespace moscope::net::postgresql
