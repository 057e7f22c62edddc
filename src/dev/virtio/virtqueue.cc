// SPDX-License-Identifier: BSD-3-Clause
#include "dev/virtio/virtqueue.hh"

#include <algorithm>
#include <bit>
#include <utility>

namespace moscope::dev {

namespace {

enum Area { kDescriptors, kDriver, kDevice };

enum : std::uint16_t { kNext = 1, kWrite = 2, kIndirect = 4 };

template <class T> std::span<std::uint8_t> bytes_of(T *first, std::size_t count) {
    return {reinterpret_cast<std::uint8_t *>(first), count * sizeof(T)};
}

} // namespace

struct Descriptor { // as it lies in guest memory
    std::uint64_t address;
    std::uint32_t length;
    std::uint16_t flags;
    std::uint16_t next;
};
static_assert(sizeof(Descriptor) == 16);

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

std::uint64_t Virtqueue::area_bytes(unsigned area) const {
    constexpr std::uint64_t kHeader = 4, kEvent = 2;
    return area == kDescriptors ? sizeof(Descriptor) * size_
                                : kHeader + kEvent + (area == kDriver ? sizeof(std::uint16_t) : sizeof(Used)) * size_;
}

void Virtqueue::enable(bool indirect, bool event_index) {
    enabled_ = true;
    indirect_ = indirect;
    event_index_ = event_index;
}

void Virtqueue::reset() { *this = Virtqueue(largest_); }

bool Virtqueue::pop(Dma &dma, Chain &chain) {
    std::deque<Chain> one;
    if (pop(dma, one, 1) == 0)
        return false;
    chain = std::move(one.front());
    return true;
}

unsigned Virtqueue::pop(Dma &dma, std::deque<Chain> &chains, unsigned most) {
    const unsigned waiting = enabled_ && !fault_ ? look(dma) : 0;
    if (waiting == 0)
        return 0;
    if (under_way_ >= size_)
        return broken("more chains under way than the queue holds");
    const unsigned at = next_available_ % size_;
    const unsigned count = std::min({most, waiting, unsigned(size_ - under_way_), unsigned(size_ - at)});
    std::vector<std::uint16_t> heads(count);
    if (!dma.read(PhysAddr(area_[kDriver]) + 4 + 2u * at, bytes_of(heads.data(), count)))
        return broken("the driver area is not memory");
    std::vector<Descriptor> descriptors;
    unsigned taken = 0;
    while (taken < count) {
        unsigned run = 1; // of chains whose first descriptors lie side by side
        while (taken + run < count && heads[taken + run] == heads[taken] + run && heads[taken + run] < size_)
            ++run;
        descriptors.resize(run);
        if (heads[taken] < size_ &&
            !dma.read(PhysAddr(area_[kDescriptors]) + 16ull * heads[taken], bytes_of(descriptors.data(), run)))
            return broken("a descriptor that is not in memory") ? 0 : taken;
        for (unsigned i = 0; i < run; ++i, ++taken) {
            Chain chain;
            chain.head = heads[taken];
            if (!walk(dma, chain, &descriptors[i]))
                return taken;
            chains.push_back(std::move(chain));
            ++next_available_;
            ++under_way_;
        }
    }
    return taken;
}

unsigned Virtqueue::waiting(const Dma &dma) const {
    std::uint16_t available;
    if (!enabled_ || fault_ || !dma.peek(PhysAddr(area_[kDriver]) + 2, bytes_of(&available, 1)))
        return 0;
    const auto waiting = static_cast<std::uint16_t>(available - next_available_);
    return waiting <= size_ ? waiting : 0;
}

/// Number of chains that the driver has made available and the device has not taken; 0 if the queue is broken.
unsigned Virtqueue::look(Dma &dma) {
    for (bool asked = false;; asked = true) {
        std::uint16_t available;
        if (!dma.load(PhysAddr(area_[kDriver]) + 2, available))
            return broken("the driver area is not memory");
        const auto waiting = static_cast<std::uint16_t>(available - next_available_);
        if (waiting > size_)
            return broken("more chains available than the queue holds");
        if (waiting != 0)
            return waiting;
        if (!event_index_ || asked)
            return 0;
        // Section 2.6.10: chains made available before the driver sees the index come unannounced: look again.
        if (!dma.store(PhysAddr(area_[kDevice]) + 4 + 8u * size_, next_available_))
            return broken("the device area is not memory");
    }
}

/// Reads the descriptors of a chain into it. `first`: the one of its head, if that lies in the table.
bool Virtqueue::walk(Dma &dma, Chain &chain, const Descriptor *first) {
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
        if (first)
            d = *std::exchange(first, nullptr);
        else if (!dma.load(table + 16ull * index, d))
            return broken("a descriptor that is not in memory");
        if (d.flags & kIndirect) {
            if (!indirect_ || inside || (d.flags & kNext))
                return broken("an indirect descriptor where none may be");
            if (d.length == 0 || d.length % 16 != 0)
                return broken("an indirect table whose length is 0 or not a multiple of 16");
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

bool Virtqueue::push(Dma &dma, std::span<const Used> used) {
    if (!enabled_ || fault_)
        return false;
    const PhysAddr device(area_[kDevice]);
    while (!used.empty()) {
        const unsigned at = next_used_ % size_;
        const auto piece = used.first(std::min<std::size_t>(used.size(), size_ - at));
        if (!dma.write(device + 4 + 8u * at,
                       {reinterpret_cast<const std::uint8_t *>(piece.data()), piece.size_bytes()}))
            return broken("the device area is not memory");
        next_used_ = static_cast<std::uint16_t>(next_used_ + piece.size());
        under_way_ = static_cast<std::uint16_t>(under_way_ - piece.size());
        used = used.subspan(piece.size());
    }
    return dma.store(device + 2, next_used_) || broken("the device area is not memory");
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
    // Section 2.6.7.2: whether the index that the driver named was passed since the last call.
    return static_cast<std::uint16_t>(next_used_ - word - 1) < static_cast<std::uint16_t>(next_used_ - before);
}

void Virtqueue::archive(Archive &a) {
    a(size_, area_, enabled_, indirect_, event_index_, next_available_, next_used_, signalled_, under_way_);
    std::uint8_t faulty = fault_ != nullptr;
    a(faulty);
    if (a.loading()) {
        if (!std::has_single_bit(size_) || size_ > largest_ || under_way_ > size_)
            throw UserError("checkpoint: a virtqueue of " + std::to_string(size_) +
                            " descriptors: expected a checkpoint that this version wrote for this machine");
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
