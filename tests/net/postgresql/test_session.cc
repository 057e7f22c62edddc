// SPDX-License-Identifier: BSD-3-Clause
// The client's side of a connection to PostgreSQL, against bytes of a server: in pieces cut at every place, with wrong rows, errors,
// and bytes that are no messages.
#include <gtest/gtest.h>

#include "net/postgresql/session.hh"
#include "server.hh"

using namespace moscope;
using namespace moscope::net;
using namespace moscope::net::postgresql;

namespace {

Bytes bytes_of(const std::string &s) { return {reinterpret_cast<const std::uint8_t *>(s.data()), s.size()}; }

/// A session and its server, in turns, until so many queries.
struct Talk {
    Session session;
    Server server;
    Counts counts;
    std::string to_server = Session::begin();

    explicit Talk(const Load &load) : session(load, 1, true) {}
    /// One exchange. Answers come in pieces of `piece` bytes.
    void turn(std::size_t piece = ~std::size_t{0}, bool last = false) {
        const std::string answer = server.take(bytes_of(to_server));
        to_server.clear();
        for (std::size_t at = 0; at < answer.size(); at += std::min(piece, answer.size() - at))
            to_server += session.take(bytes_of(answer).subspan(at, std::min(piece, answer.size() - at)), last, counts);
    }
    void turns(unsigned n, std::size_t piece = ~std::size_t{0}) {
        while (n--)
            turn(piece);
    }
};

} // namespace

TEST(PostgresqlSession, ABatchIsSentAtOnceAndEachRowIsChecked) {
    Talk t({.rows = 1'000'000, .batch = 256, .message = 100});
    t.turns(5); // greeting, warm-up, three batches
    EXPECT_EQ(t.counts.answers, 3 * 256u);
    EXPECT_EQ(t.counts.batches, 3u);
    EXPECT_EQ(t.counts.wrong, 0u);
    EXPECT_EQ(t.server.selects, 3 * 256u);
    EXPECT_EQ(t.server.queries, 1 + 3 * 3u) << "the warm-up, and 100, 100 and 56 statements for each batch";
    EXPECT_EQ(t.server.begins, 1u) << "successive reads share a transaction";
    EXPECT_EQ(t.server.commits, 0u);
}

TEST(PostgresqlSession, EachUpdateIsATransactionOfItsOwn) {
    Talk t({.rows = 1000, .batch = 256, .message = 16, .updates = 5});
    t.turns(102);
    EXPECT_EQ(t.counts.wrong, 0u);
    EXPECT_EQ(t.counts.answers + t.counts.updates, 100 * 256u);
    EXPECT_NEAR(static_cast<double>(t.counts.updates), 0.05 * 100 * 256, 150);
    EXPECT_EQ(t.server.updates, t.counts.updates);
    EXPECT_EQ(t.server.commits + 1, t.server.begins) << "all but the last are ended";
    EXPECT_GT(t.server.begins, t.server.updates);
}

TEST(PostgresqlSession, PiecesOfAnySizeChangeNothing) {
    const Load load{.rows = 50'000, .batch = 7, .message = 3, .updates = 20};
    Talk whole(load);
    whole.turns(5);
    for (std::size_t piece = 1; piece < 400; ++piece) {
        Talk cut(load);
        cut.turns(5, piece);
        ASSERT_EQ(cut.counts.wrong, 0u) << piece;
        ASSERT_EQ(cut.counts.answers, whole.counts.answers) << piece;
        ASSERT_EQ(cut.counts.updates, whole.counts.updates) << piece;
        ASSERT_EQ(cut.to_server, whole.to_server) << piece;
    }
}

TEST(PostgresqlSession, OneCutAtEachByteOfAnAnswerChangesNothing) {
    Talk whole({.rows = 100, .batch = 3, .message = 2});
    whole.turns(2);
    const std::string answer = whole.server.take(bytes_of(whole.to_server));
    for (std::size_t cut = 1; cut < answer.size(); ++cut) {
        Session s = whole.session;
        Counts c;
        EXPECT_EQ(s.take(bytes_of(answer).first(cut), false, c), "") << cut;
        EXPECT_NE(s.take(bytes_of(answer).subspan(cut), false, c), "") << cut;
        EXPECT_EQ(c.answers, 3u) << cut;
    }
}

TEST(PostgresqlSession, AWrongValueAMissingRowAndASecondRowAreWrong) {
    const auto one = [](const std::function<std::string(std::string)> &change) {
        Talk t({.rows = 100, .batch = 4, .message = 4});
        t.turns(2);
        unsigned n = 0;
        t.server.spoil = [&](std::string_view statement, std::string right) {
            return statement.starts_with("SELECT") && n++ == 1 ? change(std::move(right)) : right;
        };
        t.turn();
        EXPECT_EQ(t.session.state(), Session::kRunning);
        EXPECT_EQ(t.counts.answers, 3u);
        return t.counts.wrong;
    };
    EXPECT_EQ(one([](const std::string &) { return description() + row("2147483648") + tag("SELECT 1"); }), 1u);
    EXPECT_EQ(one([](const std::string &) { return description() + row("5x") + tag("SELECT 1"); }), 1u);
    EXPECT_EQ(one([](const std::string &) { return description() + tag("SELECT 0"); }), 1u);
    EXPECT_EQ(
        one([](const std::string &right) { return right.substr(0, right.size() - 14) + row("1") + tag("SELECT 2"); }),
        1u);
    EXPECT_EQ(one([](const std::string &right) { return right.substr(0, right.size() - 14) + tag("SELECT 2"); }), 1u);
}

TEST(PostgresqlSession, AnUpdateOfNoRowIsWrong) {
    Talk t({.rows = 100, .batch = 1, .updates = 100});
    t.turns(2);
    t.server.spoil = [](std::string_view s, std::string right) {
        return s.starts_with("UPDATE") ? tag("UPDATE 0") : right;
    };
    t.turn();
    EXPECT_EQ(t.counts.wrong, 1u);
    EXPECT_EQ(t.counts.updates, 0u);
}

TEST(PostgresqlSession, AnErrorIsReportedAndEndsItsTransaction) {
    Talk t({.rows = 100, .batch = 10, .message = 10});
    t.turns(2);
    unsigned n = 0;
    t.server.spoil = [&](std::string_view, std::string right) {
        return ++n == 5 ? error("40P01", "deadlock detected") : right;
    };
    t.turn();
    EXPECT_EQ(t.counts.wrong, 1u);
    EXPECT_EQ(t.counts.errors, 1u);
    EXPECT_EQ(t.counts.first_error, "40P01:deadlock_detected");
    EXPECT_EQ(t.counts.answers, 3u) << "those before it";
    EXPECT_EQ(t.counts.batches, 0u);
    t.server.spoil = nullptr;
    t.turn();
    EXPECT_EQ(t.server.rollbacks, 1u);
    EXPECT_EQ(t.counts.answers, 13u);
    EXPECT_EQ(t.counts.wrong, 1u);
}

TEST(PostgresqlSession, AnErrorEndsItsMessageAndTheOthersOfTheBatchAreAnsweredToo) {
    Talk t({.rows = 100, .batch = 9, .message = 3});
    t.turns(2);
    unsigned n = 0;
    t.server.spoil = [&](std::string_view, std::string right) {
        return ++n < 3 ? right : n == 3 ? error("XX000", "oops") : error("25P02", "transaction is aborted");
    };
    t.turn();
    EXPECT_EQ(t.counts.errors, 3u) << "one of each message";
    EXPECT_EQ(t.counts.first_error, "XX000:oops");
    EXPECT_EQ(t.counts.answers, 1u);
    EXPECT_EQ(t.counts.wrong, 3u);
    t.server.spoil = nullptr;
    t.turn();
    EXPECT_EQ(t.server.rollbacks, 1u);
    EXPECT_EQ(t.counts.batches, 1u);
    EXPECT_EQ(t.counts.wrong, 3u);
}

TEST(PostgresqlSession, AServerThatIsStartingIsNotAnError) {
    Session s({.rows = 1, .batch = 1}, 1, true);
    Counts c;
    EXPECT_EQ(s.take(bytes_of(error("57P03", "the database system is starting up")), false, c), "");
    EXPECT_EQ(s.state(), Session::kNotYet);
    EXPECT_EQ(c.errors + c.wrong, 0u);
}

TEST(PostgresqlSession, ARefusedStartIsAnError) {
    Session s({.rows = 1, .batch = 1}, 1, true);
    Counts c;
    s.take(bytes_of(error("28000", "no pg_hba.conf entry for host")), false, c);
    EXPECT_EQ(c.errors, 1u);
    EXPECT_EQ(c.first_error, "28000:no_pg_hba.conf_entry_for_host");
}

TEST(PostgresqlSession, WhatIsNotTheProtocolBreaksTheSession) {
    for (const std::string &bytes :
         {message('R', be32(5) + "salt"), std::string("HTTP/1.0 400 Bad Request\r\n"),
          message('Z', "I").substr(0, 1) + be32(3), message('W', ""), tag("SELECT 1"), row("1"), description()}) {
        Session s({.rows = 1, .batch = 1}, 1, true);
        Counts c;
        s.take(bytes_of(bytes), false, c);
        EXPECT_EQ(s.state(), Session::kBroken) << bytes;
    }
}

TEST(PostgresqlSession, TheLastBatchIsAnsweredBeforeItTerminates) {
    Talk t({.rows = 100, .batch = 10, .message = 10});
    t.turns(2);
    t.turn(~std::size_t{0}, true);
    EXPECT_EQ(t.counts.answers, 10u);
    EXPECT_EQ(t.session.state(), Session::kTerminated);
    t.server.take(bytes_of(t.to_server));
    EXPECT_TRUE(t.server.terminated);
}

TEST(PostgresqlSession, ACheckpointInTheMiddleOfAnAnswerChangesNothing) {
    Talk t({.rows = 1000, .batch = 20, .message = 7, .updates = 10});
    t.turns(3);
    const std::string answer = t.server.take(bytes_of(t.to_server));
    Counts c1 = t.counts, c2 = t.counts;
    t.session.take(bytes_of(answer).first(100), false, c1);
    Archive save;
    save(t.session);
    Archive load(save.bytes());
    Session again;
    load(again);
    EXPECT_TRUE(load.at_end());
    const std::string next = t.session.take(bytes_of(answer).subspan(100), false, c1);
    c2 = {};
    EXPECT_EQ(again.take(bytes_of(answer).subspan(100), false, c2), next);
    EXPECT_EQ(c1.wrong + c2.wrong, 0u);
}
