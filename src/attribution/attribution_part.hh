// SPDX-License-Identifier: BSD-3-Clause
// Who waited for which line, and why, for a part of all pages (attribution/attribution.hh): counts the transactions of detailed mode
// as they finish. For each line: the stall charged to it, transfers by class and by instruction that waited, and the instruction that last wrote it.
//
// Classes, by what happened since this core last had the line (Torrellas et al., IEEE ToC 43(6), 1994, by bytes):
// cold (it never had it), true sharing (others wrote bytes that it accesses now), false sharing (others wrote only other
// bytes), upgrade (nobody wrote, and it had the line when it asked for the right to write), capacity (nobody wrote: it was replaced).
//
// A page changes hands: its lines are counted anew whenever a transaction finds that it is of another use (page_watch.hh),
// so that what was waited for as a page table is not added to what lies there now. The history that classes are told by goes on.
//
// Beside the stall, and not part of it: the time that cores turned in loops around a PAUSE until another core wrote the line
// (cpu/x86/timed/polling.hh). They have the line then.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "attribution/page_watch.hh"
#include "attribution/transaction_counts.hh"
#include "attribution/transaction_log.hh"
#include "cpu/x86/timed/timed_core.hh"

namespace moscope {

class alignas(64) AttributionPart {
  public:
    AttributionPart(const std::vector<unsigned> &chip_of_core, std::uint64_t dram_bytes);

    /// `page`: what its line's page was when it ended.
    void transaction(const x86::Transaction &, const PageSeen &page);
    void spun(const x86::Spin &);
    /// `bytes` of the line at `dram`.
    void stored(unsigned core, Addr dram, std::uint64_t bytes, Addr pc) {
        written(line_at(dram), static_cast<std::uint8_t>(core), bytes, pc);
    }
    /// A device has written: as a core that has no number and no instructions.
    void stored_by_device(Addr dram, std::uint64_t bytes) { written(line_at(dram), kDevice, bytes, 0); }
    /// One bit for each byte of its line.
    static std::uint64_t bytes_of(Addr dram, unsigned size) {
        return (size >= 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << size) - 1) << line_offset(dram);
    }
    void expected(Addr dram) {
        const Page &page = page_of(dram);
        __builtin_prefetch(&page.now);
        __builtin_prefetch(&page.line[dram >> kLineBits & 63], 1);
    }

    /// Every transaction from here on is written down there, too.
    void log_to(TransactionLog *log) { log_ = log; }
    /// Lines are told apart by what their pages are, from here on.
    void watch(const PageWatch *pages) { pages_of_guest_ = pages; }
    /// Counts begin anew; what is known of each line's history stays.
    void reset();

    struct Sums {
        Tick exposed = 0, spinning = 0;
        std::uint64_t transactions = 0;
        std::array<Tick, kSegments> segments{};
        std::array<std::uint64_t, 64> by_log2_ns{}; ///< latencies
    };
    const Sums &sums() const { return sums_; }
    /// Settled.
    const TransactionCounts &counts() {
        counts_.settle();
        return counts_;
    }

    /// What else is known of a line that is counted, while its page was what it was.
    struct About {
        Addr va, address_space; ///< of the first access that had one
        bool user, walk, fetch;
        std::uint64_t waiters; ///< cores that waited, one bit each
        bool page_seen;        ///< false: nobody has looked, or it was cleared for a use that did not come yet
        PageSeen page;
    };
    /// `use`: of the line's kinds of transactions.
    About about(std::uint32_t use, Addr line);

  private:
    static constexpr std::uint8_t kNobody = 0xff, kDevice = 0xfe; ///< in place of a core's number

    /// What is remembered of a line.
    struct alignas(64) Line {
        std::uint64_t had = 0;    ///< cores that have had it
        std::uint64_t tenure = 0; ///< bytes written since it last changed hands
        Addr writer_pc = 0;
        Addr before_pc = 0; ///< what had written it before the last store's transaction, if another core
        std::unique_ptr<std::uint64_t[]>
            written; ///< by core that has had it: bytes that others wrote since; made when there are any
        // Since the last reset():
        std::uint64_t waiters = 0; ///< cores that waited for it in its present use
        std::uint32_t counted = 0; ///< number of the Counted of its present use, from one
        std::uint32_t use = 0;     ///< which that is, of its page
        std::uint8_t writer = kNobody;
        MissClass store = MissClass::cold; ///< of the last transaction out of a core's buffer
        // Of its present use:
        bool reached : 1 = false;                 ///< an address that it was reached by is in its Counted
        bool walk : 1 = false, fetch : 1 = false; ///< how it was reached, among other ways
        bool cleared : 1 = false;                 ///< one core alone had transactions, the kernel's stores
    };
    static_assert(sizeof(Line) == 64);
    /// A line with transactions or spinning since the last reset(), while its page was of one use.
    struct Counted {
        Addr line;
        std::uint32_t use;              ///< of the page: number in uses_, from one; 0: nobody looked
        Addr va = 0, address_space = 0; ///< of the first access that had one
        bool user = false;
        // When the use was over:
        std::uint64_t waiters = 0;
        bool walk = false, fetch = false, cleared = false;
    };
    struct Page {
        std::array<Line, 64> line;
        struct alignas(64) Now {
            PageSeen seen;
            std::uint32_t use = 0; ///< number in uses_, from one; 0: nobody has looked since the last reset()
        } now;
    };
    /// What a page was, from the first transaction that saw it so to the first that saw it otherwise.
    struct Use {
        PageSeen seen;
        std::uint32_t next = 0; ///< of one that told nothing: the one after it, if that did
    };
    /// A core's last transactions of this part, and who had written their lines before: whose write a spin loop waits after.
    struct Recent {
        struct Entry {
            Addr line = ~Addr{0}, writer = 0;
        };
        std::array<Entry, 4> entry;
        unsigned next = 0;
    };
    Page &page_of(Addr dram) {
        const Known &known = known_[(dram >> 12) % known_.size()];
        return *(__builtin_expect(known.number == dram >> 12, 1) ? known.page : page_at(dram));
    }
    Line &line_at(Addr dram) { return page_of(dram).line[dram >> kLineBits & 63]; }
    /// The page, which is known from here on.
    Page *page_at(Addr dram);
    void written(Line &l, std::uint8_t by, std::uint64_t bytes, Addr pc);
    /// Puts the bytes of the tenure down as news for these cores.
    void tell(Line &l, std::uint64_t cores);
    /// Another use of the page begins.
    void begin_use(Page &page, const PageSeen &seen);
    /// The line is counted under its page's present use.
    void count(const Page &page, Line &l, Addr dram) {
        if (__builtin_expect(!l.counted || l.use != page.now.use, 0))
            begin_counting(page, l, dram);
    }
    void begin_counting(const Page &page, Line &l, Addr dram);
    /// Notes how a line was reached, if it has not been yet.
    void reached(Line &l, Addr va, Addr address_space, bool user);
    void record(const x86::Transaction &t, std::uint32_t use, std::uint8_t writer, Addr writer_pc, MissClass k);
    MissClass classify(Line &l, const x86::Transaction &t, std::uint64_t bytes);

    const std::vector<unsigned> &chip_of_core_;
    std::vector<std::unique_ptr<std::array<std::unique_ptr<Page>, 512>>>
        pages_; ///< by DRAM address / 2 MiB, then / 4 KiB
    /// Pages looked up last, so that most looks need no walk.
    struct Known {
        Addr number = ~Addr{0};
        Page *page = nullptr;
    };
    std::array<Known, 1024> known_;
    TransactionCounts counts_;
    std::array<Recent, 64> recent_;
    std::deque<Counted> counted_;
    std::deque<Use> uses_;
    Sums sums_;
    TransactionLog *log_ = nullptr;
    const PageWatch *pages_of_guest_ = nullptr;
};

} // namespace moscope
