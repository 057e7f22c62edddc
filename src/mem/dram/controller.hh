// SPDX-License-Identifier: BSD-3-Clause
// The memory controller of one node: DRAM channels behind a front end of fixed latency. It times accesses and
// holds no data. Family 10h (AMD 31116): two DRAM controllers of one 64-bit channel each, or ganged into one of
// 128 bits. Units: ticks.
//
// The controller decides commands late where this has no effect: it wakes one DRAM clock before the earliest tick at
// which a read can be complete, and then decides the commands up to now, as far as reads depend on them. Results do not
// depend on when it wakes.
#pragma once

#include <string>
#include <vector>

#include "mem/dram/channel.hh"
#include "sim/event_queue.hh"

namespace moscope::dram {

/// What a channel has counted from `begin` to `end`. An idle clock is counted at once, but gets its final reason only
/// with the next burst, so idle clocks from before `begin` may change their reason within the window. Where this would
/// make the count of a reason negative, the window's most frequent reason gives up as many clocks.
ChannelStats counted_between(const ChannelStats &begin, const ChannelStats &end);

class DramController : public Component {
  public:
    using DoneFn = void (*)(void *owner, const DramRequest &request, Tick when);
    using SpaceFn = void (*)(void *owner, Tick now);

    DramController(EventQueue &queue, std::string name, const DramParams &params);

    /// Called once for each request, when its completion is known; `when` is not before the current tick. A read's
    /// is known once its burst is scheduled, in a wake-up of the controller at least one DRAM clock before `when`.
    /// A write completes when it is accepted, and a read of a line with a queued write at once from the queue: both
    /// within push().
    void set_done(DoneFn fn, void *owner) { done_ = fn, done_owner_ = owner; }

    /// Called in a wake-up of the controller when there is room again after can_accept() was false.
    void set_space(SpaceFn fn, void *owner) { space_ = fn, space_owner_ = owner; }

    /// Sees every command in the order of each channel; for tests and traces.
    void set_trace(Channel::TraceFn fn, void *owner);

    /// Whether push() may be called now with a read or a write.
    bool can_accept(bool write) { return __builtin_expect(has_room(write), 1) || look_for_room(write); }

    /// Takes a request that arrives now (request.arrival is set to now).
    void push(DramRequest request, Tick now);

    bool idle() const { return reads() == 0 && writes() == 0; }
    unsigned reads() const { return reads_; }
    unsigned writes() const {
        unsigned n = 0;
        for (const Channel &c : channels_)
            n += c.writes();
        return n;
    }

    /// Decides everything up to now, so that stats() is complete.
    void sync(Tick now);

    unsigned channels() const { return static_cast<unsigned>(channels_.size()); }
    /// As of the last sync().
    ChannelStats stats(unsigned channel) const;
    /// Sum over the channels.
    ChannelStats stats() const;

    const DramParams &params() const { return params_; }
    Location locate(Addr a) const { return map_(a); }

    /// Wakes at every command, for tests: no result may differ.
    void set_eager(bool eager) { eager_ = eager; }

  private:
    static void wake(Component &c, Tick now);
    static void read_done(void *self, const DramRequest &r, Tick when);
    bool has_room(bool write) const { return write ? writes() < params_.write_entries : reads_ < params_.read_entries; }
    bool look_for_room(bool write); ///< has_room(), after the channels are brought up to date
    void wake_exactly(Tick now);
    void plan();
    /// When to decide on a read whose command is at clock c.
    Tick wake_for(Cycle c) const { return channels_.front().read_complete(c) - params_.tCK_fs; }

    DramParams params_;
    AddressMap map_;
    std::vector<Channel> channels_;
    std::vector<std::uint64_t> forwarded_, merged_;
    unsigned reads_ = 0;               ///< held by all channels
    bool waiting_[2] = {false, false}; ///< can_accept(read), (write) was false
    bool eager_ = false;
    DoneFn done_ = nullptr;
    void *done_owner_ = nullptr;
    SpaceFn space_ = nullptr;
    void *space_owner_ = nullptr;
};

} // namespace moscope::dram
