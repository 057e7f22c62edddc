// SPDX-License-Identifier: BSD-3-Clause
// Who waited for which line, and why: aggregates the transactions of detailed mode as they finish. For each line: the
// stall charged to it, transfers by class and by instruction that waited, and the instruction that last wrote it.
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
#include <string>
#include <vector>

#include "cpu/x86/timed/timed_core.hh"
#include "system/attribution_tables.hh"
#include "system/page_watch.hh"
#include "system/transaction_counts.hh"
#include "system/transaction_log.hh"

namespace moscope {

inline constexpr std::array<const char *, kMissClasses> kMissClassNames = {
    "cold", "capacity", "upgrade", "true_sharing", "false_sharing"};

class Attribution final : public x86::TransactionObserver {
  public:
    Attribution(std::vector<unsigned> chip_of_core, std::uint64_t dram_bytes);

    void transaction(const x86::Transaction &) override;
    void spun(const x86::Spin &) override;
    void stored(unsigned core, Addr dram, unsigned size, Addr pc) override;
    /// A device has written: as a core that has no number and no instructions.
    void stored_by_device(Addr dram, unsigned size) { written(line_at(dram), kDevice, dram, size, 0); }
    void expected(Addr dram) override;

    /// Every transaction from here on is written down, too.
    void log_to(const std::string &path) { log_ = std::make_unique<TransactionLog>(path); }

    /// Pages are looked at when their lines are missed, from here on.
    void watch(std::unique_ptr<PageWatch> pages) { pages_of_guest_ = std::move(pages); }

    /// Counts begin anew, and the log; what is known of each line's history stays.
    void reset();

    /// JSON text, the `most` lines that were waited for longest, stall and spinning together; see docs/run-directory.md.
    std::string json(std::size_t most) const;
    /// All lines.
    AttributionTables tables() const;
    /// Stall charged to transactions, of all cores: what conservation checks against the cores' own sum.
    Tick exposed() const { return exposed_; }
    /// Time in spin loops, likewise.
    Tick spinning() const { return spinning_; }

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
    /// A core's last transactions, and who had written their lines before: whose write a spin loop waits after.
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
    void written(Line &l, std::uint8_t by, Addr dram, unsigned size, Addr pc);
    /// Puts the bytes of the tenure down as news for these cores.
    void tell(Line &l, std::uint64_t cores);
    Counted &counted(Line &l, Addr dram) {
        return l.counted ? counted_[l.counted - 1] : begin_counting(l, dram);
    }
    Counted &begin_counting(Line &l, Addr dram);
    /// Of a line that is counted: it is there.
    const Line &line_of_counted(const Counted &c) const { return const_cast<Attribution *>(this)->line_at(c.line); }
    /// What was told of a line's page when it was missed; of one that told nothing yet, when others of the page were.
    const PageSeen &page_of(const Counted &) const;
    /// Lines in the order of their addresses, by which `counted_` is not.
    const Counted &counted_at(Addr dram) const { return counted_[const_cast<Attribution *>(this)->line_at(dram).counted - 1]; }
    const TransactionCounts &settled() const;
    void record(const x86::Transaction &t, std::uint8_t writer, Addr writer_pc, MissClass k);
    MissClass classify(Line &l, const x86::Transaction &t, std::uint64_t bytes);

    unsigned cores_;
    std::vector<unsigned> chip_of_core_;
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
    Tick exposed_ = 0, spinning_ = 0;
    std::uint64_t transactions_ = 0;
    std::array<Tick, kSegments> segments_{};
    struct Histogram {
        std::array<std::uint64_t, 64> by_log2_cycles{};
    } latencies_;
    std::unique_ptr<TransactionLog> log_;
    std::unique_ptr<PageWatch> pages_of_guest_;
};

} // namespace moscope
