// SPDX-License-Identifier: BSD-3-Clause
// Attribution for one part of all pages (attribution/attribution.hh): counts the transactions of detailed mode as they
// end. For each line it keeps the stall charged to it, the misses by class and by waiting instruction, and the
// instruction that last wrote it.
//
// A miss class says what happened since the core last had the line (Torrellas et al., IEEE ToC 43(6), 1994, by bytes):
// - cold: the core never had the line;
// - true sharing: others wrote bytes that the core accesses now;
// - false sharing: others wrote only other bytes;
// - upgrade: no other core wrote, and the core had the line when it requested the right to write;
// - capacity: the line was replaced;
// - secondary (Kroft, ISCA 1981): the core already has an older miss to the same line under way, whose class says why
//   the line was not there; or a prefetch, which has no class. A write that waits for one of them is secondary if the
//   line comes with the right to write, and an upgrade otherwise.
// A line that the core's prefetcher brings counts as one that the core has had. A store counts as written when its core
// has received the right to write: the other cores have lost the line, even if the store waits for older ones and the
// line is lost again before it is performed.
//
// A page's use can change. When a transaction finds another use of the page (page_watch.hh), the page's lines are
// counted separately from then on, so that waiting for a page table is not added to the object that uses the page
// later. The history that decides the miss class continues.
//
// Spinning is counted separately and is not part of the stall: it is the time that cores spend in loops around a PAUSE
// until another core writes the line (cpu/x86/timed/polling.hh). These cores hold the line.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <unordered_set>
#include <vector>

#include "attribution/episodes.hh"
#include "attribution/page_watch.hh"
#include "attribution/transaction_counts.hh"
#include "attribution/transaction_log.hh"
#include "base/chunks.hh"
#include "base/zeroed_array.hh"
#include "cpu/x86/timed/timed_core.hh"

namespace moscope {

class alignas(64) AttributionPart {
    struct Page;

  public:
    /// The pages of all parts, by page number; null: nothing has happened there. Unused entries take no host memory.
    class Pages {
      public:
        explicit Pages(std::uint64_t dram_bytes) : of_(((dram_bytes >> 21) + 1) << 9) {}
        Page *&of(Addr dram) { return of_[dram >> 12]; }

      private:
        ZeroedArray<Page *> of_;
    };

    AttributionPart(const std::vector<unsigned> &chip_of_core, Pages &pages);

    /// `page`: snapshot of the line's page from the moment at which the transaction ended.
    void transaction(const x86::Transaction &, const PageSnapshot &page);
    /// The same for a transaction that ends now; takes the snapshot itself.
    void transaction(const x86::Transaction &);
    void spun(const x86::Spin &);
    /// `bytes`: the bytes stored in the line at `dram`, one bit each.
    void stored(unsigned core, Addr dram, std::uint64_t bytes, Addr pc) {
        Line &l = line_at(dram);
        written(l, static_cast<std::uint8_t>(core), bytes, pc);
        l.store_waits = false;
    }
    /// The same in the common case that the core is the line's last writer. Otherwise returns false and does nothing.
    static bool stored_again(Pages &pages, unsigned core, Addr dram, std::uint64_t bytes, Addr pc) {
        Page *const page = pages.of(dram);
        if (__builtin_expect(!page, 0))
            return false;
        Line &l = page->line[dram >> kLineBits & 63];
        if (l.writer != core)
            return false;
        l.tenure |= bytes;
        l.writer_pc = pc;
        l.store_waits = false;
        return true;
    }
    /// In pairs, the instruction of a writer that is a device: no program has code there.
    static constexpr Addr kDevicePc = 1;
    /// A device counts as a writer without a core number.
    void stored_by_device(Addr dram, std::uint64_t bytes) { written(line_at(dram), kDevice, bytes, kDevicePc); }
    /// The core's prefetcher has brought the line: the core has it without a transaction of its own.
    void prefetched(unsigned core, Addr dram) {
        has_it(line_at(dram), core);
        if (log_)
            prefetched_.insert(line_of(dram) | core);
    }
    /// The bytes of an access within its line, one bit each.
    static std::uint64_t bytes_of(Addr dram, unsigned size) {
        return (size >= 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << size) - 1) << line_offset(dram);
    }
    /// The same for 1 to 64 bytes, without a branch.
    static std::uint64_t bytes_stored(Addr dram, unsigned size) {
        return ~std::uint64_t{0} >> (-size & (kLineBytes - 1)) << line_offset(dram);
    }
    /// Host prefetch of what the end of a transaction for the line will access.
    static void expected(Pages &pages, Addr dram) {
        if (const Page *const page = pages.of(dram)) {
            __builtin_prefetch(&page->now);
            __builtin_prefetch(&page->line[dram >> kLineBits & 63], 1);
        }
    }

    /// Writes every transaction from here on to `log` too.
    void log_to(TransactionLog *log) { log_ = log; }
    /// Counts a line separately for each use of its page, from here on.
    void watch(const PageWatch *pages) { pages_of_guest_ = pages; }
    /// Clears the counts; each line's history stays.
    void reset();

    struct Sums {
        Tick exposed = 0, spinning = 0;
        std::uint64_t transactions = 0;
        std::array<Tick, kSegments> segments{};
        std::array<std::uint64_t, 64> by_log2_ns{}; ///< latencies
    };
    const Sums &sums() const { return sums_; }
    /// All counts so far, settled.
    const TransactionCounts &counts() {
        counts_.settle();
        return counts_;
    }

    /// What else is known of a line during one use of its page.
    struct LineUseInfo {
        Addr va, address_space; ///< of the first access that had one
        bool user, walk, fetch;
        std::uint64_t waiters; ///< cores that waited, one bit each
        bool page_known;       ///< false: no snapshot, or the page was cleared for a use that has not begun
        PageSnapshot page;
    };
    /// Episodes of the lines with the most transactions since the last reset().
    const Episodes &episodes() const { return episodes_; }
    /// `use`: TransactionKey::use of the line's entries.
    LineUseInfo info_of(std::uint32_t use, Addr line);
    /// Keeps the present state for kept_counts() and kept_info_of(): from here on, a value is saved before it changes.
    void keep();
    std::vector<TransactionCounts::Entry> kept_counts() const { return counts_.kept(); }
    /// What info_of() returned at the last keep(). The use must have existed then.
    LineUseInfo kept_info_of(std::uint32_t use, Addr line);

  private:
    static constexpr std::uint8_t kNoWriter = 0xff, kDevice = 0xfe; ///< instead of a core number
    static constexpr std::uint32_t kNoUse = ~0u;                    ///< instead of the number of a page's use

    /// The history of a line, and its present use.
    struct alignas(64) Line {
        std::uint64_t had = 0;    ///< cores that have held it, one bit each
        std::uint64_t tenure = 0; ///< bytes that the last writer wrote since the line came to it
        Addr writer_pc = 0;
        Addr before_pc = 0; ///< writer before the last store's transaction; 0: not another core's
        std::unique_ptr<std::uint64_t[]>
            written; ///< by core that has held it: bytes that others wrote since; allocated on demand
        // Since the last reset():
        std::uint64_t waiters = 0;       ///< cores that waited for it in its present use
        std::uint32_t line_use = 0;      ///< number of its present LineUse, from one
        std::uint32_t page_use = kNoUse; ///< the page's use of its present LineUse; kNoUse: there is none
        std::uint32_t changed_after = 0; ///< the number of the last keep() before its last change
        std::uint8_t writer = kNoWriter;
        MissClass store = MissClass::cold; ///< of the last store's transaction; a buffer wait takes it over
        // Of its present use:
        std::uint8_t accessed_by = 0;   ///< kWalk: by page walks; kFetch: by fetches
        bool address_known : 1 = false; ///< its LineUse has a virtual address
        bool cleared : 1 = false;       ///< only one core accessed it, by the kernel's stores through the direct map
        bool store_waits : 1 = false;   ///< the last writer's store has the line and is yet to be performed
        static constexpr std::uint8_t kWalk = 1, kFetch = 2;
    };
    static_assert(sizeof(Line) == 64);
    /// A line with transactions or spinning since the last reset(), during one use of its page.
    struct LineUse {
        Addr line;
        std::uint32_t page_use;         ///< number in page_uses_, from one; 0: no snapshot
        Addr va = 0, address_space = 0; ///< of the first access that had one
        bool user = false;
        // Set when the use ended:
        std::uint64_t waiters = 0;
        std::uint8_t accessed_by = 0;
        bool cleared = false;
    };
    struct Page {
        std::array<Line, 64> line;
        struct alignas(64) Now {
            PageSnapshot snapshot;
            std::uint32_t use = 0; ///< number in page_uses_, from one; 0: no snapshot since the last reset()
        } now;
    };
    /// One use of a page, from the first snapshot that shows it to the first that shows another.
    struct PageUse {
        PageSnapshot snapshot;
        std::uint32_t next = 0; ///< of an unidentified use: the use that followed it, if any
    };
    /// A core's last loads and locked operations in this part, each with the line's writer at that time. A spin loop on
    /// the line waits for that writer.
    struct Recent {
        struct Entry {
            Addr line = ~Addr{0}, writer = 0;
        };
        std::array<Entry, 4> entry;
        unsigned next = 0;
    };
    Page &page_of(Addr dram) {
        Page *const page = pages_.of(dram);
        return __builtin_expect(page != nullptr, 1) ? *page : begin_page(dram);
    }
    Line &line_at(Addr dram) { return page_of(dram).line[dram >> kLineBits & 63]; }
    [[gnu::noinline]] Page &begin_page(Addr dram);
    void written(Line &l, std::uint8_t by, std::uint64_t bytes, Addr pc) {
        if (__builtin_expect(l.writer != by, 0))
            taken_over(l, by);
        l.tenure |= bytes;
        l.writer_pc = pc;
    }
    /// Another writer's tenure begins.
    void taken_over(Line &l, std::uint8_t by);
    /// Records for each of these cores that others wrote the bytes of the tenure.
    void mark_written(Line &l, std::uint64_t cores);
    /// Begins another use of the page.
    void begin_page_use(Page &page, const PageSnapshot &snapshot);
    /// Makes the line's entries count under the present use of its page.
    void count(const Page &page, Line &l, Addr dram) {
        if (__builtin_expect(l.page_use != page.now.use, 0))
            begin_line_use(page, l, dram);
    }
    void begin_line_use(const Page &page, Line &l, Addr dram);
    /// Ignores all but the first `page_uses` uses of pages.
    LineUseInfo info_of(std::uint32_t use, const Line &l, std::size_t page_uses) const;
    /// To be called before the line or the use of its page changes: saves what kept_info_of() needs.
    void put_aside(Line &l) {
        if (__builtin_expect(l.changed_after != keeps_, 0))
            put_aside_first(l);
    }
    void put_aside_first(Line &l);
    /// Keeps the address by which the line was accessed.
    void note_access(Line &l, Addr va, Addr address_space, bool user) {
        LineUse &c = line_uses_[l.line_use - 1];
        c.va = va;
        c.address_space = address_space;
        c.user = user;
        l.address_known = va != 0;
    }
    /// Counts what only the end of a transaction changes, not a wait. Returns the transaction's class.
    MissClass count_end(Line &l, const x86::Transaction &t, Addr other_pc);
    /// Passes the full record of a transaction to the log and the episodes. `writer` and `k` are ignored for a wait.
    [[gnu::noinline]] void record(const x86::Transaction &t, std::uint32_t use, std::uint8_t writer, Addr writer_pc,
                                  MissClass k, bool of_episode);
    static TransactionRecord record_of(const x86::Transaction &t, std::uint32_t use, std::uint8_t writer,
                                       Addr writer_pc, MissClass k, bool prefetched);
    /// The core has the line now, so no byte of it is new to the core any more.
    void has_it(Line &l, unsigned core) {
        if (l.writer != kNoWriter && l.writer != core)
            end_tenure(l, core);
        if (l.written)
            l.written[core] = 0;
        l.had |= std::uint64_t{1} << core;
    }
    /// Ends the last writer's tenure, because core `core` has the line now.
    [[gnu::noinline]] void end_tenure(Line &l, unsigned core);
    MissClass classify(Line &l, const x86::Transaction &t);
    void count_transaction(const x86::Transaction &t, const PageSnapshot &snapshot);

    const std::vector<unsigned> &chip_of_core_;
    Pages &pages_;
    std::vector<std::unique_ptr<Page>> own_pages_; ///< of this part
    TransactionCounts counts_;
    std::array<Recent, 64> recent_;
    Chunks<LineUse, 1 << 10> line_uses_;
    Chunks<PageUse, 1 << 10> page_uses_;
    std::uint32_t keeps_ = 0; ///< since the last reset()
    std::size_t kept_page_uses_ = 0;
    struct Before {
        std::uint32_t use;
        LineUseInfo info;
    };
    std::vector<Before> before_; ///< info at the last keep(), of uses that have changed since then
    bool before_by_use_ = false; ///< it is sorted
    Sums sums_;
    Episodes episodes_;
    TransactionLog *log_ = nullptr;
    /// For the log: line and core of each prefetch since the core's last transaction on the line.
    std::unordered_set<Addr> prefetched_;
    const PageWatch *pages_of_guest_ = nullptr;
};

} // namespace moscope
