// SPDX-License-Identifier: BSD-3-Clause
// Who waited for which line, and why, for a part of all pages (system/attribution.hh): counts the transactions of detailed mode
// as they finish. For each line: the stall charged to it, transfers by class and by instruction that waited, and the instruction that last wrote it.
//
// Classes, by what happened since this core last had the line (Torrellas et al., IEEE ToC 43(6), 1994, by bytes):
// cold (it never had it), true sharing (others wrote bytes that it accesses now), false sharing (others wrote only other
// bytes), upgrade (nobody wrote, and it had the line when it asked for the right to write), capacity (nobody wrote: it was replaced).
//
// Beside the stall, and not part of it: the time that cores turned in loops around a PAUSE until another core wrote the line
// (cpu/x86/timed/polling.hh). They have the line then.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "cpu/x86/timed/timed_core.hh"
#include "system/page_watch.hh"
#include "system/transaction_counts.hh"
#include "system/transaction_log.hh"

namespace moscope {

class alignas(64) AttributionPart {
  public:
    AttributionPart(const std::vector<unsigned> &chip_of_core, std::uint64_t dram_bytes);

    void transaction(const x86::Transaction &);
    void spun(const x86::Spin &);
    /// `bytes` of the line at `dram`.
    void stored(unsigned core, Addr dram, std::uint64_t bytes, Addr pc) { written(line_at(dram), static_cast<std::uint8_t>(core), bytes, pc); }
    /// A device has written: as a core that has no number and no instructions.
    void stored_by_device(Addr dram, std::uint64_t bytes) { written(line_at(dram), kDevice, bytes, 0); }
    /// One bit for each byte of its line.
    static std::uint64_t bytes_of(Addr dram, unsigned size) {
        return (size >= 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << size) - 1) << line_offset(dram);
    }
    void expected(Addr dram) { __builtin_prefetch(&line_at(dram), 1); }

    /// Every transaction from here on is written down there, too.
    void log_to(TransactionLog *log) { log_ = log; }
    /// Pages are looked at when their lines are missed, from here on.
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

    /// What else is known of a line that is counted.
    struct About {
        Addr va, address_space; ///< of the first access that had one
        bool user, walk, fetch;
        unsigned cores; ///< that waited
        /// What was told of its page when it was missed; of one that told nothing yet, when others of the page were.
        const PageSeen &page;
    };
    About about(Addr line);

  private:
    static constexpr std::uint8_t kNobody = 0xff, kDevice = 0xfe; ///< in place of a core's number

    /// What is remembered of a line.
    struct alignas(64) Line {
        std::uint64_t had = 0;        ///< cores that have had it
        std::uint64_t tenure = 0;     ///< bytes written since it last changed hands
        Addr writer_pc = 0;
        Addr before_pc = 0;           ///< what had written it before the last store's transaction, if another core
        std::unique_ptr<std::uint64_t[]> written; ///< by core that has had it: bytes that others wrote since; made when there are any
        // Since the last reset():
        std::uint64_t waiters = 0;  ///< cores that waited for it
        std::uint32_t counted = 0;  ///< number of its Counted, from one
        std::uint8_t writer = kNobody;
        MissClass store = MissClass::cold; ///< of the last transaction out of a core's buffer
        bool told : 1 = false;      ///< its page's description is in its Counted
        bool reached : 1 = false;   ///< so is an address that it was reached by
        bool walk : 1 = false, fetch : 1 = false; ///< how it was reached, among other ways
    };
    /// A line with transactions or spinning since the last reset().
    struct Counted {
        Addr line;
        Addr va = 0, address_space = 0; ///< of the first access that had one
        bool user = false;
        PageSeen page{}; ///< at the first transaction at which it told anything
    };
    struct Page {
        std::array<Line, 64> line;
    };
    /// A core's last transactions of this part, and who had written their lines before: whose write a spin loop waits after.
    struct Recent {
        struct Entry {
            Addr line = ~Addr{0}, writer = 0;
        };
        std::array<Entry, 4> entry;
        unsigned next = 0;
    };
    Line &line_at(Addr dram) {
        const Known &known = known_[(dram >> 12) % known_.size()];
        return (__builtin_expect(known.number == dram >> 12, 1) ? known.page : page_at(dram))->line[dram >> kLineBits & 63];
    }
    /// The page, which is known from here on.
    Page *page_at(Addr dram);
    void written(Line &l, std::uint8_t by, std::uint64_t bytes, Addr pc);
    /// Puts the bytes of the tenure down as news for these cores.
    void tell(Line &l, std::uint64_t cores);
    Counted &counted(Line &l, Addr dram) {
        return l.counted ? counted_[l.counted - 1] : begin_counting(l, dram);
    }
    Counted &begin_counting(Line &l, Addr dram);
    const PageSeen &page_of(const Counted &);
    void record(const x86::Transaction &t, std::uint8_t writer, Addr writer_pc, MissClass k);
    MissClass classify(Line &l, const x86::Transaction &t, std::uint64_t bytes);

    const std::vector<unsigned> &chip_of_core_;
    std::vector<std::unique_ptr<std::array<std::unique_ptr<Page>, 512>>> pages_; ///< by DRAM address / 2 MiB, then / 4 KiB
    /// Pages looked up last, so that most looks need no walk.
    struct Known {
        Addr number = ~Addr{0};
        Page *page = nullptr;
    };
    std::array<Known, 1024> known_;
    TransactionCounts counts_;
    std::array<Recent, 64> recent_;
    std::deque<Counted> counted_;
    Sums sums_;
    TransactionLog *log_ = nullptr;
    const PageWatch *pages_of_guest_ = nullptr;
};

} // namespace moscope
