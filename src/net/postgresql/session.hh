// SPDX-License-Identifier: BSD-3-Clause
// The client's side of one connection to PostgreSQL, with the load of the MOSBENCH paper (section 5.5). The client
// sends a batch of statements at once, as messages of the simple query protocol, and the next batch when the last one
// has been answered in full. The server sends its answers at the end of a message, or when it has 8 KiB of them; if
// each message holds only a part of the batch, the client can count rows soon after the server has found them. A
// statement reads the row of a random key; a given percentage of the statements updates the row instead. Successive
// reads share one read-only transaction, across batches as well. Each update is a transaction of its own.
//
// The server has a table `kv` of two integers: `k`, the primary key, from 0 to rows - 1, and `v`, which is value_of(k)
// even after an update, so that each answer can be checked.
#pragma once

#include <deque>

#include "base/rng.hh"
#include "net/postgresql/messages.hh"

namespace moscope::net::postgresql {

/// Knuth's multiplicative hash, without the sign bit.
inline std::uint32_t value_of(std::uint32_t key) { return key * 2654435761u & 0x7fffffffu; }

struct Load {
    std::uint64_t rows = 1, batch = 1;
    std::uint64_t message = 1; ///< most statements in a message
    std::uint64_t updates = 0; ///< in a hundred statements
};

struct Counts {
    std::uint64_t answers = 0; ///< right rows
    std::uint64_t updates = 0; ///< done
    std::uint64_t batches = 0; ///< answered in full
    std::uint64_t wrong = 0;   ///< statements, messages and connections without the right answer
    std::uint64_t errors = 0;  ///< of these: errors that the server reported
    std::string first_error;   ///< SQLSTATE and text, without blanks
};

class Session {
  public:
    enum State : std::uint8_t {
        kStarting,   ///< until the server is ready for a query
        kWarming,    ///< the server's process maps the table
        kRunning,    ///< a batch awaits its answers
        kNotYet,     ///< the server says that it is starting
        kTerminated, ///< this side has ended the session in good order
        kBroken      ///< the server does not follow the protocol
    };

    Session() = default;
    /// `first`: this session has the server read the table and its index into the server's buffers.
    Session(const Load &load, std::uint64_t seed, bool first) : first_(first), load_(load), rng_(seed) {}

    State state() const { return state_; }
    /// What to send first.
    static std::string begin() { return startup_message("postgres", "postgres"); }
    /// Takes bytes from the server; returns what to send. With `last`, ends the session once the batch is answered.
    std::string take(Bytes, bool last, Counts &);
    void archive(Archive &a) {
        a(state_, first_, load_.rows, load_.batch, load_.message, load_.updates, rng_, reader_, expected_, open_,
          right_, skip_);
    }

  private:
    enum Kind : std::uint8_t { kSelect, kUpdate, kBegin, kCommit, kRollback, kEnd /* of a message */ };
    struct Expected {
        Kind kind = kSelect;
        std::uint32_t key = 0;
        void archive(Archive &a) { a(kind, key); }
    };
    enum Transaction : std::uint8_t { kNone, kReading, kWriting, kFailed };

    std::string ready(bool last, Counts &);
    std::string next_batch();
    void within(Transaction, std::string &text);
    void take(Message, Counts &);
    bool expects() const { return state_ == kRunning && !expected_.empty() && expected_.front().kind != kEnd; }
    void row(Bytes body);
    void complete(Bytes body, Counts &);
    void error(Bytes body, Counts &);

    State state_ = kStarting;
    bool first_ = false;
    Load load_;
    Rng rng_;
    Reader reader_;
    std::deque<Expected> expected_;
    Transaction open_ = kNone;
    std::uint8_t right_ = 0; ///< right rows so far for the first of `expected_`; kTooMany: another row came
    bool skip_ = false;      ///< an error came in this batch
};

} // namespace moscope::net::postgresql
