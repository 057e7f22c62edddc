// SPDX-License-Identifier: BSD-3-Clause
// Attributes every core's waiting to cache lines (attribution_part.hh), for all of memory. Memory is split into parts by page, so
// that host threads can feed the parts in parallel. A line's part depends on its address only, never on the number of threads.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "attribution/attribution_part.hh"
#include "attribution/attribution_rows.hh"
#include "attribution/loads_in_flight.hh"
#include "attribution/page_watch.hh"
#include "attribution/stack_samples.hh"
#include "attribution/transaction_log.hh"
#include "cpu/x86/timed/timed_core.hh"

namespace moscope {

class Attribution final : public x86::TransactionObserver {
  public:
    static constexpr unsigned kParts = 2;
    static unsigned part_of(Addr dram) { return static_cast<unsigned>(__builtin_parityll(dram >> 12)); }

    Attribution(std::vector<unsigned> chip_of_core, std::uint64_t dram_bytes)
        : chip_of_core_(std::move(chip_of_core)),
          pages_(dram_bytes),
          parts_{AttributionPart{chip_of_core_, pages_}, AttributionPart{chip_of_core_, pages_}} {}

    void transaction(const x86::Transaction &t) override {
        if (__builtin_expect(loads_ || stacks_, 0))
            sample(t);
        at(t.access->addr.value).transaction(t);
    }
    /// `page`: the snapshot of the line's page, taken when the transaction ended.
    void transaction(const x86::Transaction &t, const PageSnapshot &page) {
        at(t.access->addr.value).transaction(t, page);
    }
    PageSnapshot snapshot(const x86::Transaction &t) const {
        return watch_ ? watch_->snapshot(t.access->addr.value) : PageSnapshot{};
    }
    void spun(const x86::Spin &s) override {
        sample(s);
        count_spin(s);
    }
    void count_spin(const x86::Spin &s) { at(s.look.dram).spun(s); }
    /// Updates the records that are kept by core, if they are enabled: its loads in flight and, if it has waited,
    /// samples of its stack.
    [[gnu::noinline]] void sample(const x86::Transaction &t) const {
        if (loads_)
            loads_->ended(t);
        if (stacks_ && t.exposed)
            stacks_->waited(t.core, line_of(t.access->addr.value), t.exposed);
    }
    void sample(const x86::Spin &s) const {
        if (stacks_)
            stacks_->waited(s.core, line_of(s.look.dram), s.time);
    }
    void stored(unsigned core, Addr dram, unsigned size, Addr pc) override {
        const std::uint64_t bytes = AttributionPart::bytes_stored(dram, size);
        if (!AttributionPart::stored_again(pages_, core, dram, bytes, pc))
            stored_bytes(core, dram, bytes, pc);
    }
    void stored_by_device(Addr dram, unsigned size) {
        stored_by_device_bytes(dram, AttributionPart::bytes_of(dram, size));
    }
    /// `bytes`: the bytes stored in the line at `dram`, one bit each.
    void stored_bytes(unsigned core, Addr dram, std::uint64_t bytes, Addr pc);
    void stored_by_device_bytes(Addr dram, std::uint64_t bytes) { at(dram).stored_by_device(dram, bytes); }
    void expected(Addr dram) override {
        AttributionPart::expected(pages_, dram);
        page_expected(dram);
    }
    void prefetched(unsigned core, Addr dram) override { at(dram).prefetched(core, dram); }
    void page_expected(Addr dram) const {
        if (watch_)
            watch_->expected(dram);
    }

    /// Also writes every later transaction to a file, in the order of the calls. UserError if it cannot be written.
    void log_to(const std::string &path);
    bool logs() const { return log_ != nullptr; }

    /// Null: takes no samples.
    void sample_stacks(std::unique_ptr<StackSamples> stacks) { stacks_ = std::move(stacks); }
    /// Packed samples (attribution/stack_samples.hh); empty if stacks are not sampled.
    std::string stacks() const { return stacks_ ? stacks_->packed() : std::string{}; }

    void count_loads() { loads_ = std::make_unique<LoadsInFlight>(chip_of_core_); }
    /// Packed LoadRows; empty if they are not counted.
    std::string loads() const { return loads_ ? loads_->packed() : std::string{}; }

    /// Takes a snapshot of a line's page at each miss from here on.
    void watch(std::unique_ptr<PageWatch> pages);

    /// Clears the counts and the log; each line's history stays.
    void reset();

    /// The sums over all lines as moscope.attribution/1; see docs/run-directory.md.
    nlohmann::json totals() const;
    /// All lines, pairs and transfers.
    AttributionRows rows() const;
    /// Keeps the present counts: kept_rows() returns what rows() would return now. Replaces the counts kept before.
    void keep();
    AttributionRows kept_rows() const;
    /// Episodes of lines with many transactions (attribution/episodes.hh), line by line: packed TransactionRecords.
    std::string episodes() const;
    /// Stall charged to transactions on all cores. The conservation check compares it with the cores' own sum.
    Tick exposed() const { return sums().exposed; }
    /// Time in spin loops on all cores, checked likewise.
    Tick spinning() const { return sums().spinning; }

  private:
    AttributionPart &at(Addr dram) { return parts_[part_of(dram)]; }
    AttributionPart::Sums sums() const;
    /// The settled counts of all parts.
    std::vector<const TransactionCounts *> counts() const;

    std::vector<unsigned> chip_of_core_;
    AttributionPart::Pages pages_;
    mutable std::array<AttributionPart, kParts> parts_; ///< mutable: reading settles their counts
    std::unique_ptr<TransactionLog> log_;
    std::unique_ptr<PageWatch> watch_;
    std::unique_ptr<StackSamples> stacks_;
    std::unique_ptr<LoadsInFlight> loads_;
};

/// Rows from settled counts, which the caller passes in pieces. `info_of` returns what is known of a line during a use.
AttributionRows rows_of(const std::vector<std::span<const TransactionCounts::Entry>> &counts,
                        const std::function<AttributionPart::LineUseInfo(std::uint32_t use, Addr line)> &info_of);

} // namespace moscope
