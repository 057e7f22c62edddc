// SPDX-License-Identifier: BSD-3-Clause
// The lines of memory that hold decoded code, for all caches of decoded blocks together. Stores to these lines must be
// reported. While host threads run cores in parallel, the map does not change: each chip logs the code that it decodes,
// sees its own log at once, and sees the logs of the others after the next barrier. The effect of a store therefore
// does not depend on the speed of a thread.
#pragma once

#include <bit>
#include <cstdint>
#include <functional>
#include <mutex>
#include <span>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/types.hh"

namespace moscope::x86 {

class CodeMap {
  public:
    /// Bytes that a block was decoded from, within a page; numbers of pages are those of DRAM.
    struct News {
        Addr dram;
        std::uint64_t size;
        std::size_t digest; ///< of the bytes
    };

    /// Number of chips that may run in parallel.
    void set_chips(unsigned n) { fresh_ = std::vector<Fresh>(n); }
    void run_side_by_side(bool yes) { side_by_side_ = yes; }
    bool side_by_side() const { return side_by_side_; }
    /// Called when a chip's empty log receives an entry.
    std::function<void()> on_news;

    bool marked(std::uint64_t page) const { return page / 64 < pages_.size() && (pages_[page / 64] >> page % 64 & 1); }
    /// Whether this chip has decoded code since the last barrier.
    bool has_news(unsigned chip) const { return fresh_[chip].any; }
    /// The same as a reference, which is valid until the number of chips changes.
    const bool &news(unsigned chip) const { return fresh_[chip].any; }
    /// Whether there is code in lines of [dram, dram + size), within a page.
    bool holds(Addr dram, std::uint64_t size) const {
        const auto it = lines_.find(dram >> 12);
        return it != lines_.end() && (it->second & lines(dram, size));
    }
    /// The same, with the code that this chip has decoded since the last barrier.
    bool holds(unsigned chip, Addr dram, std::uint64_t size) const {
        if (holds(dram, size))
            return true;
        for (const News &n : fresh_[chip].news)
            if (n.dram >> 12 == dram >> 12 && (lines(n.dram, n.size) & lines(dram, size)))
                return true;
        return false;
    }

    /// While cores take turns: there is code in [dram, dram + size), within a page.
    void mark(Addr dram, std::uint64_t size) {
        const std::uint64_t page = dram >> 12;
        if (page / 64 >= pages_.size())
            pages_.resize(std::bit_ceil(page / 64 + 1));
        pages_[page / 64] |= std::uint64_t{1} << page % 64;
        lines_[page] |= lines(dram, size);
    }
    /// While cores run in parallel: adds to the chip's log, from the thread that runs the chip.
    void note(unsigned chip, const News &n) {
        tell_of_first(chip);
        fresh_[chip].news.push_back(n);
        fresh_[chip].any = true;
    }
    /// The same for a store of this chip to [dram, dram + size), within a page, that has left a core's buffer.
    void note_store(unsigned chip, Addr dram, unsigned size) {
        tell_of_first(chip);
        fresh_[chip].stores.push_back({dram, size});
    }
    /// At a barrier: enters all logs into the map, and calls `show(entry, first)` for each entry (first: it marks its
    /// page), then `stored(dram)` for each noted store to lines with code.
    template <class F, class G> void settle(F &&show, G &&stored) {
        for (Fresh &f : fresh_) {
            for (const News &n : f.news) {
                const bool first = !marked(n.dram >> 12);
                mark(n.dram, n.size);
                show(n, first);
            }
            f.forget();
        }
        for (Fresh &f : fresh_)
            for (const auto &[dram, size] : std::exchange(f.stores, {}))
                if (holds(dram, size))
                    stored(dram);
    }
    void forget(std::uint64_t page) {
        if (lines_.erase(page))
            pages_[page / 64] &= ~(std::uint64_t{1} << page % 64);
    }
    void clear() {
        lines_.clear();
        pages_.assign(pages_.size(), 0);
        for (Fresh &f : fresh_) {
            f.forget();
            f.stores.clear();
        }
    }
    static std::size_t digest(std::span<const std::byte> bytes) {
        return std::hash<std::string_view>()({reinterpret_cast<const char *>(bytes.data()), bytes.size()});
    }

    std::mutex timing; ///< held while a block's operations get their timing

  private:
    /// Bits of the page's lines that have bytes in [dram, dram + size).
    static std::uint64_t lines(Addr dram, std::uint64_t size) {
        const unsigned first = dram >> kLineBits & 63, last = (dram + size - 1) >> kLineBits & 63;
        return ~std::uint64_t{0} << first & ~std::uint64_t{0} >> (63 - last);
    }

    struct alignas(64) Fresh {
        std::vector<News> news;
        bool any = false; ///< news is not empty
        std::vector<std::pair<Addr, unsigned>> stores;
        void forget() {
            news.clear();
            any = false;
        }
    };
    void tell_of_first(unsigned chip) {
        if (const Fresh &f = fresh_[chip]; f.news.empty() && f.stores.empty() && on_news)
            on_news();
    }
    std::vector<Fresh> fresh_{1};      ///< by chip
    std::vector<std::uint64_t> pages_; ///< a bit for each page: lines_ has it
    std::unordered_map<std::uint64_t, std::uint64_t> lines_;
    bool side_by_side_ = false;
};

} // namespace moscope::x86
