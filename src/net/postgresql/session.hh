// SPDX-License-Identifier: BSD-3-Clause
// A client's side of one connection to PostgreSQL, as a load generator of the MOSBENCH paper (section 5.5) has it: it sends
// batches of statements at once, as messages of the simple query protocol, and the next batch when all of the last is
// answered. The server sends its answers at the end of a message, or when it has 8 KiB, so messages that hold a part of
// the batch let the client count rows soon after the server has found them. A statement reads the row of a random key, or,
// so many in a hundred, updates it. Successive reads share one read-only transaction, across batches as well. Each update
// is a transaction of its own.
//
// The server has a table `kv` of two integers: `k`, the primary key, from 0 to rows - 1, and `v`, which is value_of(k), also
// after an update. So each answer can be checked.
#pragma once

#include <deque>

#include "base/rng.hh"
#include "net/postgresql/messages.hh"

namespace moscope::net::postgresql {

/// Knuth's multiplicative hash, without the sign bit.
inline std::uint32_t value_of(std::uint32_t key) { return key * 2654435761u & 0x7fffffffu; }

struct Load {
    std::uint64_t rows = 1, batch = 1;
    std::uint64_t message = 1; ///< statements in a message at most
    std::uint64_t updates = 0; ///< in a hundred statements
};

struct Counts {
    std::uint64_t answers = 0; ///< right rows
    std::uint64_t updates = 0; ///< done
    std::uint64_t batches = 0; ///< answered in full
    std::uint64_t wrong = 0;   ///< statements, messages and connections with another answer than the right one
    std::uint64_t errors = 0;  ///< of these: errors that the server reported
    std::string first_error;   ///< SQLSTATE and text, without blanks
};

class Session {
  public:
    enum State : std::uint8_t {
        kStarting,   ///< until the server is ready for a query
        kWarming,    ///< the server's process maps the table
        kRunning,    ///< a batch is on its way
        kNotYet,     ///< the server says that it is starting
        kTerminated, ///< by this side, in good order
        kBroken      ///< what comes is not the protocol
    };

    Session() = default;
    /// `first`: it has the server read the table and its index into the buffers.
    Session(const Load &load, std::uint64_t seed, bool first) : first_(first), load_(load), rng_(seed) {}

    State state() const { return state_; }
    /// What to send first.
    static std::string begin() { return startup_message("postgres", "postgres"); }
    /// Takes what came; what to send. With `last`, it terminates when the batch is answered.
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
    std::uint8_t right_ = 0; ///< rows of the first of `expected_`, as far as they were right; kTooMany: others came
    bool skip_ = false;      ///< an error came in this batch
};

} // namespace moscope::net::postgresql
