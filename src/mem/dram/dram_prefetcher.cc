// SPDX-License-Identifier: BSD-3-Clause
#include "mem/dram/dram_prefetcher.hh"

#include <algorithm>
#include <functional>
#include <utility>

namespace moscope::dram {

DramPrefetcher::DramPrefetcher(const DramPrefetchParams &params, DramController &controller, DoneFn done, void *owner)
    : params_(params),
      policy_(prefetch_policy(PrefetchLevel::dram, params.policy)),
      controller_(controller),
      done_(done),
      owner_(owner),
      own_time_(controller.params().frontend_fs + controller.params().backend_fs),
      streams_(params.streams, params.reach),
      entries_(params.lines) {}

DramPrefetcher::Entry *DramPrefetcher::find(Addr line) {
    const auto e = std::find_if(entries_.begin(), entries_.end(), [line](const Entry &x) { return x.line == line; });
    return e == entries_.end() ? nullptr : &*e;
}

bool DramPrefetcher::read(Addr line, Tick now, void *context) {
    Entry *const e = find(line);
    if (!e)
        return false;
    ++(e->ready > now ? stats.late : stats.useful);
    e->line = kNoLine;
    if (e->ready == kNever) {
        e->waiting = context;
        e->since = now;
    } else
        done_(owner_, context, std::max(e->ready, now + own_time_));
    return true;
}

void DramPrefetcher::wrote(Addr line) {
    if (Entry *const e = find(line)) {
        e->line = kNoLine;
        ++stats.useless;
    }
}

/// An entry for another line: a free one, or the oldest whose line has arrived. Null: all are under way.
DramPrefetcher::Entry *DramPrefetcher::room(Tick now) {
    Entry *best = nullptr;
    for (Entry &e : entries_) {
        if (e.ready > now)
            continue;
        if (e.line == kNoLine)
            return &e;
        if (!best || e.age < best->age)
            best = &e;
    }
    stats.useless += best != nullptr;
    return best;
}

void DramPrefetcher::learn(Addr line, Tick now) {
    const unsigned stream = policy_.learn(streams_, 0, line);
    if (stream == PrefetchStreams::kNone)
        return;
    each_ahead(line, streams_.all[stream].stride, params_.ahead, [&](Addr target) {
        if (find(target))
            return true;
        const auto under_way =
            std::count_if(entries_.begin(), entries_.end(), [now](const Entry &e) { return e.ready > now; });
        if (under_way >= static_cast<std::ptrdiff_t>(params_.in_flight) || !controller_.can_accept(false))
            return false;
        Entry *const e = room(now);
        if (!e)
            return false;
        *e = {.line = target, .ready = kNever, .age = next_age_++};
        ++stats.fetched;
        controller_.push(DramRequest{target, false, now, e}, now);
        return true;
    });
}

bool DramPrefetcher::done(void *context, Tick when) {
    auto *const e = static_cast<Entry *>(context);
    if (std::less<>{}(e, entries_.data()) || !std::less<>{}(e, entries_.data() + entries_.size()))
        return false;
    e->ready = when;
    if (void *const waiting = std::exchange(e->waiting, nullptr))
        done_(owner_, waiting, std::max(when, e->since + own_time_));
    return true;
}

} // namespace moscope::dram
