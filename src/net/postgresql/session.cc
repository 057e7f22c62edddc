// SPDX-License-Identifier: BSD-3-Clause
#include "net/postgresql/session.hh"

#include <charconv>

namespace moscope::net::postgresql {

namespace {

constexpr std::uint8_t kTooMany = 255;
constexpr std::string_view kTags[] = {"SELECT 1", "UPDATE 1", "BEGIN", "COMMIT", "ROLLBACK"};
constexpr std::string_view kIsStarting = "57P03"; ///< cannot_connect_now
constexpr std::size_t kMostErrorText = 100;

/// Looks up every hundredth key. 4 KiB hold 113 rows or 180 entries of the index, so the lookups touch every page of
/// the table and the index, and the server's process then has all of them in its page table, even on a kernel whose
/// faults map one page each. Otherwise a backend would take these faults one by one over its first ten thousand
/// queries.
std::string warm_up(std::uint64_t rows, bool first) {
    return std::string(first ? "SELECT pg_prewarm('kv'), pg_prewarm('kv_pkey');" : "") +
           "SET enable_hashjoin = off; SET enable_mergejoin = off;"
           "SELECT count(v) FROM generate_series(0, " +
           std::to_string(rows - 1) + ", 100) AS g JOIN kv ON k = g;RESET ALL";
}

bool is_number(std::string_view text, std::uint32_t right) {
    std::uint32_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    return error == std::errc() && end == text.data() + text.size() && value == right;
}

} // namespace

std::string Session::take(Bytes bytes, bool last, Counts &counts) {
    std::string out;
    Message m;
    reader_.put(bytes);
    while (state_ != kBroken && state_ != kTerminated && reader_.get(m)) {
        if (m.type == 'Z')
            out += ready(last, counts);
        else
            take(m, counts);
    }
    if (reader_.broken())
        state_ = kBroken;
    return out;
}

/// A message other than ReadyForQuery.
void Session::take(Message m, Counts &counts) {
    switch (m.type) {
    case 'E': error(m.body, counts); break;
    case 'N': // NoticeResponse
    case 'S': // ParameterStatus
        break;
    case 'R': // an Authentication request other than AuthenticationOk is not expected
        if (state_ != kStarting || m.body.size() != 4 || get32(m.body, 0) != 0)
            state_ = kBroken;
        break;
    case 'K': // BackendKeyData
        if (state_ != kStarting)
            state_ = kBroken;
        break;
    case 'T': // RowDescription
        if (state_ == kStarting || (state_ == kRunning && (!expects() || expected_.front().kind != kSelect)))
            state_ = kBroken;
        break;
    case 'D': // DataRow
        if (expects())
            row(m.body);
        else if (state_ != kWarming)
            state_ = kBroken;
        break;
    case 'C': // CommandComplete
        if (expects())
            complete(m.body, counts);
        else if (state_ != kWarming)
            state_ = kBroken;
        break;
    default: state_ = kBroken;
    }
}

void Session::row(Bytes body) {
    const Expected &e = expected_.front();
    const bool right = e.kind == kSelect && right_ == 0 && is_number(only_value(body), value_of(e.key));
    right_ = right ? 1 : kTooMany;
}

void Session::complete(Bytes body, Counts &counts) {
    const Expected e = expected_.front();
    expected_.pop_front();
    std::size_t at = 0;
    const bool tag = text_at(body, at) == kTags[e.kind] && at == body.size();
    if (!tag || right_ != (e.kind == kSelect ? 1 : 0))
        ++counts.wrong;
    else if (e.kind == kSelect)
        ++counts.answers;
    else if (e.kind == kUpdate)
        ++counts.updates;
    right_ = 0;
}

void Session::error(Bytes body, Counts &counts) {
    const std::string_view code = error_field(body, 'C');
    if (state_ == kStarting && code == kIsStarting) {
        state_ = kNotYet;
        return;
    }
    ++counts.wrong;
    ++counts.errors;
    if (counts.first_error.empty()) {
        const std::string text = std::string(code) + ":" + std::string(error_field(body, 'M'));
        for (const char c : std::string_view(text).substr(0, kMostErrorText))
            counts.first_error.push_back(c > ' ' && c < 127 ? c : '_');
    }
    while (expects()) // the server executes nothing more of the message (section 55.2.2.1)
        expected_.pop_front();
    skip_ = true;
    right_ = 0;
}

/// ReadyForQuery: the server has answered a message.
std::string Session::ready(bool last, Counts &counts) {
    if (state_ == kNotYet)
        return {};
    for (; expects(); skip_ = true) {
        ++counts.wrong;
        expected_.pop_front();
    }
    if (!expected_.empty())
        expected_.pop_front(); // its end
    right_ = 0;
    if (!expected_.empty())
        return {}; // more of the batch is to come
    if (state_ == kRunning && skip_)
        open_ = kFailed;
    else
        counts.batches += state_ == kRunning;
    skip_ = false;
    if (last) {
        state_ = kTerminated;
        return terminate_message();
    }
    if (state_ == kStarting) {
        state_ = kWarming;
        return query_message(warm_up(load_.rows, first_));
    }
    state_ = kRunning;
    return next_batch();
}

/// Unless the open transaction is of the wanted kind, ends it and begins one that is.
void Session::within(Transaction wanted, std::string &text) {
    if (open_ == wanted)
        return;
    if (open_ != kNone) {
        text += open_ == kFailed ? "ROLLBACK;" : "COMMIT;";
        expected_.push_back({open_ == kFailed ? kRollback : kCommit, 0});
    }
    if (wanted != kNone) {
        text += wanted == kReading ? "BEGIN READ ONLY;" : "BEGIN;";
        expected_.push_back({kBegin, 0});
    }
    open_ = wanted;
}

std::string Session::next_batch() {
    std::string messages, text;
    for (std::uint64_t n = 1; n <= load_.batch; ++n) {
        const auto key = static_cast<std::uint32_t>(rng_.below(load_.rows));
        const bool update = load_.updates != 0 && rng_.below(100) < load_.updates;
        within(update ? kWriting : kReading, text);
        expected_.push_back({update ? kUpdate : kSelect, key});
        if (update)
            text += "UPDATE kv SET v = " + std::to_string(value_of(key)) + " WHERE k = " + std::to_string(key) + ";";
        else
            text += "SELECT v FROM kv WHERE k = " + std::to_string(key) + ";";
        if (update)
            within(kNone, text);
        if (n % load_.message == 0 || n == load_.batch) {
            expected_.push_back({kEnd, 0});
            messages += query_message(text);
            text.clear();
        }
    }
    return messages;
}

} // namespace moscope::net::postgresql
