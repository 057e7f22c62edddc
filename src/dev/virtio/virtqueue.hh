// SPDX-License-Identifier: BSD-3-Clause
// A split virtqueue (Virtual I/O Device specification 1.1, section 2.6) with indirect descriptors and event indices, as
// the device sees it. The guest owns the rings, so the device checks everything in them: indices, addresses, lengths,
// order and length of chains, number of chains in flight. A failed check breaks the queue until it is reset.
#pragma once

#include <cstdint>
#include <deque>
#include <span>
#include <vector>

#include "dev/dma.hh"
#include "sim/archive.hh"

namespace moscope::dev {

class Virtqueue {
  public:
    static constexpr unsigned kLongestChain = 1024; ///< buffers

    struct Segment {
        Addr at = 0;
        std::uint32_t size = 0,
                      unused = 0; ///< `unused` fills the padding, whose bytes would be undefined in checkpoints
    };
    /// Buffers that the driver made available together; readable ones come first. All lie in DRAM.
    struct Chain {
        std::uint16_t head = 0;
        std::vector<Segment> readable, writable;
        std::uint64_t readable_bytes() const { return bytes(readable); }
        std::uint64_t writable_bytes() const { return bytes(writable); }
        void archive(Archive &a) { a(head, readable, writable); }

      private:
        static std::uint64_t bytes(const std::vector<Segment> &list) {
            std::uint64_t n = 0;
            for (const Segment &s : list)
                n += s.size;
            return n;
        }
    };

    /// A chain that the device returns, and the number of bytes that it wrote into it; laid out as in guest memory.
    struct Used {
        std::uint32_t head = 0, bytes = 0;
    };

    explicit Virtqueue(std::uint16_t largest) : largest_(largest), size_(largest) {}

    // --- as the transport sets it up -----------------------------------------------------------------------------
    std::uint16_t size() const { return size_; }
    /// A power of two up to the largest; anything else is ignored, as is every change once the queue is enabled.
    void set_size(std::uint16_t size);
    /// Area 0: descriptors, 1: driver, 2: device. `high`: bits 63:32.
    void set_area(unsigned area, bool high, std::uint32_t value);
    Addr area(unsigned area) const { return area_[area]; }
    /// Of the three areas of a ring of this size.
    std::uint64_t area_bytes(unsigned area) const;
    void enable(bool indirect, bool event_index);
    bool enabled() const { return enabled_; }
    void reset();

    // --- traffic -----------------------------------------------------------------------------------------------------
    /// Takes the next chain. False: there is none, or the queue is broken.
    bool pop(Dma &, Chain &);
    /// Takes up to `most` chains; adjacent ring entries and descriptors are fetched together. Returns the number taken,
    /// which is lower than what is available if the ring ends or the queue breaks.
    unsigned pop(Dma &, std::deque<Chain> &, unsigned most);
    /// Returns chains to the driver. False: the queue is broken.
    bool push(Dma &, std::span<const Used>);
    /// Whether the driver wants an interrupt for the chains pushed since the last call.
    bool wants_interrupt(Dma &);
    /// Number of chains that the driver has made available and the device has not taken, for statistics; 0 if broken.
    unsigned waiting(const Dma &) const;
    /// Why the queue is broken; null: it is not.
    const char *fault() const { return fault_; }

    void archive(Archive &);

  private:
    bool broken(const char *why) {
        fault_ = why;
        return false;
    }
    unsigned look(Dma &);
    bool walk(Dma &, Chain &, const struct Descriptor *first);

    std::uint16_t largest_, size_;
    Addr area_[3] = {};
    bool enabled_ = false, indirect_ = false, event_index_ = false;
    std::uint16_t next_available_ = 0, next_used_ = 0, signalled_ = 0;
    std::uint16_t under_way_ = 0;
    const char *fault_ = nullptr;
};

/// Reads and writes the bytes of a list of segments in sequence, from the first one on.
class SegmentCursor {
  public:
    SegmentCursor(Dma &dma, const std::vector<Virtqueue::Segment> &list) : dma_(dma), list_(list) {}
    /// False: the list ends first, or a segment is not in DRAM.
    bool read(std::span<std::uint8_t> to);
    bool write(std::span<const std::uint8_t> from);
    bool skip(std::uint64_t bytes);

  private:
    template <class F> bool advance(std::uint64_t bytes, F visit);
    Dma &dma_;
    const std::vector<Virtqueue::Segment> &list_;
    std::size_t index_ = 0;
    std::uint32_t offset_ = 0;
};

} // namespace moscope::dev
