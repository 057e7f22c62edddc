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

unsigned DramController::reads() const {
    unsigned n = 0;
    for (const Channel &c : channels_)
        n += c.reads();
    return n;
}

unsigned DramController::writes() const {
    unsigned n = 0;
    for (const Channel &c : channels_)
        n += c.writes();
    return n;
}

bool DramController::can_accept(bool write) {
    const auto room = [&] { return write ? writes() < params_.write_entries : reads() < params_.read_entries; };
    if (room())
        return true;
    sync(queue().now()); // the channels lag behind: look again at what is true now
    const bool yes = room();
    waiting_[write] |= !yes;
    plan();
    return yes;
}

void DramController::push(const DramRequest &request, Tick now) {
    MOSCOPE_CHECK(request.write ? writes() < params_.write_entries : reads() < params_.read_entries);
    DramRequest r = request;
    r.arrival = now;
    const Location at = map_(r.addr);
    Channel &c = channels_[at.channel];
    // The first clock edge after the front end, strictly: what is decided up to now cannot depend on it.
    const Cycle seen = (now + params_.frontend_fs) / params_.tCK_fs + 1;

    // A channel without reads may lag by any time; its queue of writes is looked at only when it matters.
    const bool may_have_write = c.may_have_write(line_of(r.addr));
    if (may_have_write || (c.reads() == 0 && !r.write))
        c.run(now / params_.tCK_fs + 1);
    if (may_have_write && c.has_write(line_of(r.addr))) {
        ++(r.write ? merged_ : forwarded_)[at.channel];
        if (done_)
            done_(done_owner_, r, now + params_.frontend_fs + (r.write ? 0 : params_.backend_fs));
        plan();
        return;
    }
    c.add(r, at, seen);
    if (r.write) {
        if (waiting_[0] || waiting_[1])
            plan();
        if (done_)
            done_(done_owner_, r, now + params_.frontend_fs);
    } else {
        schedule_no_later_than(
            std::max(eager_ ? seen * params_.tCK_fs : c.read_complete(c.next_read()) - params_.tCK_fs, queue().now()));
    }
}

void DramController::sync(Tick now) {
    const Cycle end = now / params_.tCK_fs + 1;
    for (Channel &c : channels_)
        c.run(end);
}

void DramController::wake(Component &self, Tick now) {
    auto &d = static_cast<DramController &>(self);
    d.sync(now);
    for (const bool write : {false, true})
        if (d.waiting_[write] && (write ? d.writes() < d.params_.write_entries : d.reads() < d.params_.read_entries)) {
            d.waiting_[write] = false;
            if (d.space_)
                d.space_(d.space_owner_, now);
        }
    d.plan();
}

void DramController::read_done(void *self, const DramRequest &r, Tick when) {
    const auto *d = static_cast<DramController *>(self);
    if (d->done_)
        d->done_(d->done_owner_, r, when);
}

void DramController::plan() {
    Tick t = kNever;
    for (const Channel &c : channels_) {
        // A requester that waits for space resumes at the very clock at which there is some; none waits for writes alone.
        if ((waiting_[0] || waiting_[1] || eager_) && (c.reads() || c.writes()))
            t = std::min(t, c.next_command() * params_.tCK_fs);
        else if (c.reads())
            t = std::min(t, c.read_complete(c.next_read()) - params_.tCK_fs);
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
