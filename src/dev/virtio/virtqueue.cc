// SPDX-License-Identifier: BSD-3-Clause
#include "dev/virtio/virtqueue.hh"

#include <bit>

namespace moscope::dev {

namespace {

enum Area { kDescriptors, kDriver, kDevice };

struct Descriptor { // as it lies in guest memory
    std::uint64_t address;
    std::uint32_t length;
    std::uint16_t flags;
    std::uint16_t next;
};
static_assert(sizeof(Descriptor) == 16);
enum : std::uint16_t { kNext = 1, kWrite = 2, kIndirect = 4 };

} // namespace

void Virtqueue::set_size(std::uint16_t size) {
    if (!enabled_ && std::has_single_bit(size) && size <= largest_)
        size_ = size;
}

void Virtqueue::set_area(unsigned area, bool high, std::uint32_t value) {
    if (enabled_)
        return;
    const unsigned shift = high ? 32 : 0;
    area_[area] = (area_[area] & ~(Addr{0xffffffff} << shift)) | Addr{value} << shift;
}

void Virtqueue::enable(bool indirect, bool event_index) {
    enabled_ = true;
    indirect_ = indirect;
    event_index_ = event_index;
}

void Virtqueue::reset() { *this = Virtqueue(largest_); }

bool Virtqueue::pop(Dma &dma, Chain &chain) {
    if (!enabled_ || fault_)
        return false;
    const PhysAddr driver(area_[kDriver]);
    for (bool asked = false;; asked = true) {
        std::uint16_t available;
        if (!dma.load(driver + 2, available))
            return broken("the driver area is not memory");
        const auto waiting = static_cast<std::uint16_t>(available - next_available_);
        if (waiting > size_)
            return broken("more chains available than the queue holds");
        if (waiting != 0)
            break;
        if (!event_index_ || asked)
            return false;
        // Section 2.6.10: what was made available before the driver could see the index comes without a notification.
        if (!dma.store(PhysAddr(area_[kDevice]) + 4 + 8u * size_, next_available_))
            return broken("the device area is not memory");
    }
    if (under_way_ >= size_)
        return broken("more chains under way than the queue holds");
    if (!dma.load(driver + 4 + 2u * (next_available_ % size_), chain.head))
        return broken("the driver area is not memory");
    if (!walk(dma, chain))
        return false;
    ++next_available_;
    ++under_way_;
    return true;
}

bool Virtqueue::walk(Dma &dma, Chain &chain) {
    chain.readable.clear();
    chain.writable.clear();
    PhysAddr table(area_[kDescriptors]);
    std::uint32_t entries = size_, index = chain.head, seen = 0;
    bool inside = false; // an indirect table
    for (;;) {
        if (index >= entries)
            return broken("a descriptor beyond the end of its table");
        if (seen++ >= entries)
            return broken("a chain that loops");
        Descriptor d;
        if (!dma.load(table + 16ull * index, d))
            return broken("a descriptor that is not in memory");
        if (d.flags & kIndirect) {
            if (!indirect_ || inside || (d.flags & kNext))
                return broken("an indirect descriptor where none may be");
            if (d.length == 0 || d.length % 16 != 0)
                return broken("an indirect table of a length that is none");
            table = PhysAddr(d.address);
            entries = d.length / 16;
            index = seen = 0;
            inside = true;
            continue;
        }
        if (d.length == 0)
            return broken("a buffer without bytes");
        if (!dma.reaches(PhysAddr(d.address), d.length))
            return broken("a buffer that is not memory");
        if (!(d.flags & kWrite) && !chain.writable.empty())
            return broken("a readable buffer after a writable one");
        if (chain.readable.size() + chain.writable.size() >= kLongestChain)
            return broken("a chain of too many buffers");
        (d.flags & kWrite ? chain.writable : chain.readable).push_back({d.address, d.length});
        if (!(d.flags & kNext))
            return true;
        index = d.next;
    }
}

bool Virtqueue::push(Dma &dma, std::uint16_t head, std::uint32_t bytes) {
    if (!enabled_ || fault_)
        return false;
    const PhysAddr device(area_[kDevice]);
    struct {
        std::uint32_t head, bytes;
    } const element{head, bytes};
    if (!dma.store(device + 4 + 8u * (next_used_ % size_), element))
        return broken("the device area is not memory");
    ++next_used_;
    if (!dma.store(device + 2, next_used_))
        return broken("the device area is not memory");
    --under_way_;
    return true;
}

bool Virtqueue::wants_interrupt(Dma &dma) {
    if (!enabled_ || fault_)
        return false;
    const std::uint16_t before = signalled_;
    signalled_ = next_used_;
    const PhysAddr driver(area_[kDriver]);
    std::uint16_t word;
    if (!dma.load(event_index_ ? driver + 4 + 2u * size_ : driver, word))
        return broken("the driver area is not memory");
    if (!event_index_)
        return before != next_used_ && !(word & 1);
    // Section 2.6.7.2: the index that the driver named was passed since.
    return static_cast<std::uint16_t>(next_used_ - word - 1) < static_cast<std::uint16_t>(next_used_ - before);
}

void Virtqueue::archive(Archive &a) {
    a(size_, area_, enabled_, indirect_, event_index_, next_available_, next_used_, signalled_, under_way_);
    std::uint8_t faulty = fault_ != nullptr;
    a(faulty);
    if (a.loading()) {
        if (!std::has_single_bit(size_) || size_ > largest_ || under_way_ > size_)
            throw UserError("checkpoint: a virtqueue of " + std::to_string(size_) +
                            " descriptors: expected one written by this version for this machine");
        fault_ = faulty ? "broken before the checkpoint" : nullptr;
    }
}

template <class F> bool SegmentCursor::advance(std::uint64_t bytes, F visit) {
    for (std::uint64_t done = 0; done < bytes;) {
        if (index_ == list_.size())
            return false;
        const Virtqueue::Segment &s = list_[index_];
        const std::uint64_t n = std::min<std::uint64_t>(bytes - done, s.size - offset_);
        if (!visit(PhysAddr(s.at + offset_), done, n))
            return false;
        done += n;
        offset_ += static_cast<std::uint32_t>(n);
        if (offset_ == s.size) {
            ++index_;
            offset_ = 0;
        }
    }
    return true;
}

bool SegmentCursor::read(std::span<std::uint8_t> to) {
    return advance(to.size(), [&](PhysAddr at, std::uint64_t done, std::uint64_t n) {
        return dma_.read(at, to.subspan(done, n));
    });
}

bool SegmentCursor::write(std::span<const std::uint8_t> from) {
    return advance(from.size(), [&](PhysAddr at, std::uint64_t done, std::uint64_t n) {
        return dma_.write(at, from.subspan(done, n));
    });
}

bool SegmentCursor::skip(std::uint64_t bytes) {
    return advance(bytes, [](PhysAddr, std::uint64_t, std::uint64_t) { return true; });
}

} // namespace moscope::dev
