// SPDX-License-Identifier: BSD-3-Clause
// The transmit FIFO of a network card: frames that were fetched from guest memory and have not left on the link. Room is reserved
// before frames are fetched, since fetching takes time and the card does it for several queues side by side.
#pragma once

#include <algorithm>
#include <deque>

#include "base/types.hh"
#include "sim/archive.hh"

namespace moscope::dev {

class OutFifo {
  public:
    explicit OutFifo(std::uint64_t size) : size_(size) {}

    /// Removes the frames that have left by `now`.
    void advance(Tick now) {
        for (; !frames_.empty() && frames_.front().leaves <= now; frames_.pop_front())
            used_ -= frames_.front().bytes;
    }
    /// The last frame may exceed the FIFO's end, as its length is not known before it is fetched.
    bool full() const { return used_ + reserved_ >= size_; }
    std::uint64_t room() const { return size_ - std::min(size_, used_ + reserved_); }
    void reserve(std::uint64_t bytes) { reserved_ += bytes; }
    void release(std::uint64_t bytes) { reserved_ -= bytes; }
    /// Adds a frame that leaves at `leaves`, which is not before the frames ahead of it.
    void push(std::uint64_t bytes, Tick leaves) {
        frames_.push_back({bytes, leaves});
        used_ += bytes;
    }
    /// The tick at which frames in the FIFO will have freed `wanted(bytes)`; kNever if they do not free as much.
    Tick has_room(std::uint64_t bytes) const {
        const std::uint64_t most = size_ - std::min(wanted(bytes), size_);
        std::uint64_t used = used_;
        for (const Leaving &f : frames_) {
            used -= f.bytes;
            if (used <= most)
                return f.leaves;
        }
        return kNever;
    }
    /// The free space for which a blocked queue waits: `bytes`, but at most half of the FIFO.
    std::uint64_t wanted(std::uint64_t bytes) const { return std::min(bytes, size_ / 2); }
    std::size_t frames() const { return frames_.size(); }
    void archive(Archive &a) { a(frames_, used_); }

  private:
    struct Leaving {
        std::uint64_t bytes = 0;
        Tick leaves = 0;
        void archive(Archive &a) { a(bytes, leaves); }
    };
    std::uint64_t size_, used_ = 0, reserved_ = 0;
    std::deque<Leaving> frames_;
};

} // namespace moscope::dev
