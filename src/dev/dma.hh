// SPDX-License-Identifier: BSD-3-Clause
// How devices reach guest memory. Addresses come from the guest, so every transfer is checked: one that touches
// anything but DRAM moves no byte and returns false. The board decides what a transfer costs, and reports each write to
// the caches of decoded blocks and to the memory system. Transfers of `PhysMapDma` are functional and take no time. A
// timed transfer (board/timed_dma.hh) runs within perform(): its read() or write() returns when the transfer has ended.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <functional>
#include <span>

#include "base/types.hh"
#include "mem/phys_map.hh"

namespace moscope::dev {

class Dma {
  public:
    virtual ~Dma() = default;
    virtual bool read(PhysAddr from, std::span<std::uint8_t> to) = 0;
    virtual bool write(PhysAddr to, std::span<const std::uint8_t> from) = 0;
    /// Reads the present bytes without a transfer, for statistics.
    virtual bool peek(PhysAddr from, std::span<std::uint8_t> to) const = 0;
    /// Makes lanes: work in different lanes may run side by side. Returns the number of the first new lane. All devices
    /// share lane 0.
    virtual unsigned make_lanes(unsigned) { return 0; }
    /// Runs a piece of work that reads or writes guest memory. The pieces of one lane run one after another; with
    /// functional transfers, a piece runs at once.
    virtual void perform(unsigned, std::function<void()> work) {
        const auto at_once = std::move(work);
        at_once();
    }
    /// Whether all of [from, from + size) is DRAM.
    virtual bool reaches(PhysAddr from, std::uint64_t size) const = 0;

    /// Reads or writes a little-endian integer.
    template <class T> bool load(PhysAddr from, T &to) {
        return read(from, {reinterpret_cast<std::uint8_t *>(&to), sizeof to});
    }
    template <class T> bool store(PhysAddr to, T value) {
        return write(to, {reinterpret_cast<const std::uint8_t *>(&value), sizeof value});
    }
};

/// Functional transfers. `written` is called after the bytes of each write are in place.
class PhysMapDma final : public Dma {
  public:
    using Written = std::function<void(PhysAddr, std::uint64_t size)>;
    explicit PhysMapDma(const PhysMap &map, Written written = {}) : map_(map), written_(std::move(written)) {}

    bool reaches(PhysAddr from, std::uint64_t size) const override {
        return each_piece(from, size, [](std::byte *, std::uint64_t, std::uint64_t) {});
    }
    bool read(PhysAddr from, std::span<std::uint8_t> to) override { return peek(from, to); }
    bool peek(PhysAddr from, std::span<std::uint8_t> to) const override {
        return reaches(from, to.size()) &&
               each_piece(from, to.size(), [&](std::byte *at, std::uint64_t done, std::uint64_t n) {
                   std::memcpy(to.data() + done, at, n);
               });
    }
    bool write(PhysAddr to, std::span<const std::uint8_t> from) override {
        if (!reaches(to, from.size()))
            return false;
        each_piece(to, from.size(),
                   [&](std::byte *at, std::uint64_t done, std::uint64_t n) { std::memcpy(at, from.data() + done, n); });
        if (written_)
            written_(to, from.size());
        return true;
    }

  private:
    // Physical addresses are contiguous in DRAM on either side of the hole.
    template <class F> bool each_piece(PhysAddr from, std::uint64_t size, F visit) const {
        if (size != 0 && from.value + (size - 1) < from.value)
            return false;
        for (std::uint64_t done = 0; done < size;) {
            const PhysAddr at = from + done;
            std::byte *host = map_.host(at);
            if (host == nullptr)
                return false;
            const Addr end = at.value < map_.hole ? std::min(map_.hole, map_.end()) : map_.end();
            const std::uint64_t n = std::min(size - done, end - at.value);
            visit(host, done, n);
            done += n;
        }
        return true;
    }

    const PhysMap &map_;
    Written written_;
};

} // namespace moscope::dev
