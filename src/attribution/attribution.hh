// SPDX-License-Identifier: BSD-3-Clause
// Who waited for which line, and why (attribution_part.hh), of all of memory: in parts by page, which host threads can be told of
// side by side. How many threads there are changes nothing: a line's part is its page's.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "attribution/attribution_part.hh"
#include "attribution/attribution_tables.hh"
#include "attribution/page_watch.hh"
#include "attribution/transaction_log.hh"
#include "cpu/x86/timed/timed_core.hh"

namespace moscope {

inline constexpr std::array<const char *, kMissClasses> kMissClassNames = {"cold", "capacity", "upgrade",
                                                                           "true_sharing", "false_sharing"};

class Attribution final : public x86::TransactionObserver {
  public:
    static constexpr unsigned kParts = 2;
    static unsigned part_of(Addr dram) { return static_cast<unsigned>(__builtin_parityll(dram >> 12)); }

    Attribution(std::vector<unsigned> chip_of_core, std::uint64_t dram_bytes)
        : chip_of_core_(std::move(chip_of_core)),
          parts_{AttributionPart{chip_of_core_, dram_bytes}, AttributionPart{chip_of_core_, dram_bytes}} {}

    void transaction(const x86::Transaction &t) override { transaction(t, look(t)); }
    /// Of which somebody has looked at the page when it ended.
    void transaction(const x86::Transaction &t, const PageSeen &page) { at(t.access->addr.value).transaction(t, page); }
    PageSeen look(const x86::Transaction &t) const { return pages_ ? pages_->look(t.access->addr.value) : PageSeen{}; }
    void spun(const x86::Spin &s) override { at(s.look.dram).spun(s); }
    void stored(unsigned core, Addr dram, unsigned size, Addr pc) override {
        stored_bytes(core, dram, AttributionPart::bytes_of(dram, size), pc);
    }
    void stored_by_device(Addr dram, unsigned size) {
        stored_by_device_bytes(dram, AttributionPart::bytes_of(dram, size));
    }
    /// `bytes` of the line at `dram`, one bit each.
    void stored_bytes(unsigned core, Addr dram, std::uint64_t bytes, Addr pc) {
        at(dram).stored(core, dram, bytes, pc);
    }
    void stored_by_device_bytes(Addr dram, std::uint64_t bytes) { at(dram).stored_by_device(dram, bytes); }
    void expected(Addr dram) override {
        at(dram).expected(dram);
        page_expected(dram);
    }
    void page_expected(Addr dram) const {
        if (pages_)
            pages_->expected(dram);
    }

    /// Every transaction from here on is written down, too, in the order in which they are told.
    void log_to(const std::string &path);
    bool logs() const { return log_ != nullptr; }

    /// Pages are looked at when their lines are missed, from here on.
    void watch(std::unique_ptr<PageWatch> pages);

    /// Counts begin anew, and the log; what is known of each line's history stays.
    void reset();

    /// JSON text, the `most` lines that were waited for longest, stall and spinning together; see docs/run-directory.md.
    std::string json(std::size_t most) const;
    /// All lines.
    AttributionTables tables() const;
    /// Stall charged to transactions, of all cores: what conservation checks against the cores' own sum.
    Tick exposed() const { return sums().exposed; }
    /// Time in spin loops, likewise.
    Tick spinning() const { return sums().spinning; }

  private:
    AttributionPart &at(Addr dram) { return parts_[part_of(dram)]; }
    AttributionPart::Sums sums() const;
    /// Of all parts, settled.
    std::vector<const TransactionCounts *> counts() const;

    std::vector<unsigned> chip_of_core_;
    mutable std::array<AttributionPart, kParts> parts_; ///< to read them is to settle their counts
    std::unique_ptr<TransactionLog> log_;
    std::unique_ptr<PageWatch> pages_;
};

} // namespace moscope
