// SPDX-License-Identifier: BSD-3-Clause
// Front end of a node's DRAM: splits requests over the channels, answers from queued writes, and decides when the
// channels have to be brought up to date.
#include "mem/dram/controller.hh"

#include <algorithm>

namespace moscope::dram {

ChannelStats counted_between(const ChannelStats &begin, const ChannelStats &end) {
    ChannelStats s = end - begin;
    for (Cycle &fewer : s.lost)
        while (fewer < 0) {
            Cycle &most = *std::max_element(s.lost.begin(), s.lost.end());
            const Cycle n = std::min(std::max<Cycle>(most, 0), -fewer);
            most -= n;
            fewer += n;
            if (n == 0) { // the window has no idle clock
                s.accounted -= fewer;
                fewer = 0;
            }
        }
    return s;
}

DramController::DramController(EventQueue &queue, std::string name, const DramParams &params)
    : Component(queue, std::move(name), &DramController::wake), params_(params), map_(params) {
    params_.validate();
    const unsigned n = params_.bus_channels();
    channels_.reserve(n);
    for (unsigned i = 0; i < n; ++i) {
        channels_.emplace_back(params_, i);
        channels_.back().set_read_done(&DramController::read_done, this);
    }
    forwarded_.resize(n);
    merged_.resize(n);
}

void DramController::set_trace(Channel::TraceFn fn, void *owner) {
    for (Channel &c : channels_)
        c.set_trace(fn, owner);
}

bool DramController::look_for_room(bool write) {
    sync(queue().now());
    const bool yes = has_room(write);
    waiting_[write] |= !yes;
    plan();
    return yes;
}

void DramController::push(DramRequest request, Tick now) {
    MOSCOPE_CHECK(has_room(request.write));
    request.arrival = now;
    const Location at = map_(request.addr);
    Channel &c = channels_[at.channel];
    // The first clock edge after the front end, strictly: what is decided up to now cannot depend on it.
    const Cycle seen = (now + params_.frontend_fs) / params_.tCK_fs + 1;

    // A channel without reads may lag by any time; its queue of writes is brought up to date only when it matters.
    const bool may_have_write = c.may_have_write(line_of(request.addr));
    if (may_have_write || (c.reads() == 0 && !request.write))
        c.run(now / params_.tCK_fs + 1);
    if (may_have_write && c.has_write(line_of(request.addr))) {
        ++(request.write ? merged_ : forwarded_)[at.channel];
        if (done_)
            done_(done_owner_, request, now + params_.frontend_fs + (request.write ? 0 : params_.backend_fs));
        plan();
        return;
    }
    c.add(request, at, seen);
    if (request.write) {
        if (waiting_[0] || waiting_[1])
            plan();
        if (done_)
            done_(done_owner_, request, now + params_.frontend_fs);
    } else {
        ++reads_;
        schedule_no_later_than(std::max(eager_ ? seen * params_.tCK_fs : wake_for(c.next_read()), queue().now()));
    }
}

void DramController::sync(Tick now) {
    const Cycle end = now / params_.tCK_fs + 1;
    for (Channel &c : channels_)
        c.run(end);
}

void DramController::wake(Component &self, Tick now) {
    auto &d = static_cast<DramController &>(self);
    if (d.waiting_[0] || d.waiting_[1] || d.eager_) {
        d.wake_exactly(now);
        return;
    }
    const Cycle end = now / d.params_.tCK_fs + 1;
    Cycle next = kNeverCycle;
    for (Channel &c : d.channels_) {
        c.run_reads(end);
        if (c.reads())
            next = std::min(next, c.next_read());
    }
    if (next != kNeverCycle)
        d.schedule_no_later_than(std::max(d.wake_for(next), now));
}

/// Brings the channels up to date, and notifies the requester that waits if there is space again.
void DramController::wake_exactly(Tick now) {
    sync(now);
    for (const bool write : {false, true})
        if (waiting_[write] && has_room(write)) {
            waiting_[write] = false;
            if (space_)
                space_(space_owner_, now);
        }
    plan();
}

void DramController::read_done(void *self, const DramRequest &r, Tick when) {
    auto *d = static_cast<DramController *>(self);
    --d->reads_;
    if (d->done_)
        d->done_(d->done_owner_, r, when);
}

void DramController::plan() {
    Tick t = kNever;
    for (const Channel &c : channels_) {
        // A requester that waits for space resumes exactly at the clock at which there is some. Otherwise only reads
        // matter, because nothing waits for a write.
        if ((waiting_[0] || waiting_[1] || eager_) && (c.reads() || c.writes()))
            t = std::min(t, c.next_command() * params_.tCK_fs);
        else if (c.reads())
            t = std::min(t, wake_for(c.next_read()));
    }
    if (t != kNever)
        schedule_no_later_than(std::max(t, queue().now()));
}

ChannelStats DramController::stats(unsigned channel) const {
    ChannelStats s = channels_[channel].stats();
    s.forwarded = forwarded_[channel];
    s.merged = merged_[channel];
    return s;
}

ChannelStats DramController::stats() const {
    ChannelStats sum;
    for (unsigned i = 0; i < channels(); ++i)
        sum += stats(i);
    return sum;
}

} // namespace moscope::dram
