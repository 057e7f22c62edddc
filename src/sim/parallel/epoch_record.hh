// SPDX-License-Identifier: BSD-3-Clause
// Processor time of the parts of each epoch: every logical process, the serial phase, and the shared work. `moscope bench threads`
// computes from it what other numbers of host processors would give. Only a scheduler with one thread records, so that threads
// do not slow each other down.
#pragma once

#include <algorithm>
#include <cstdint>
#include <ctime>
#include <vector>

namespace moscope {

class EpochRecord {
  public:
    explicit EpochRecord(unsigned processes) : processes_(processes), row_(columns()) {}

    // The columns of a row, in nanoseconds of processor time: the processes by number, then these.
    unsigned serial() const { return processes_; }
    unsigned shared() const { return processes_ + 1; }      ///< all parts of the shared work
    unsigned shared_part() const { return processes_ + 2; } ///< its longest part
    unsigned columns() const { return processes_ + 3; }

    /// Adds the processor time of its lifetime to a column of the present epoch. Does nothing without a record.
    class Part {
      public:
        Part(EpochRecord *record, unsigned column) : record_(record), column_(column) {
            if (record_)
                begun_ = processor_ns();
        }
        ~Part() {
            if (record_)
                record_->add(column_, processor_ns() - begun_);
        }
        Part(const Part &) = delete;
        Part &operator=(const Part &) = delete;

      private:
        EpochRecord *record_;
        unsigned column_;
        std::uint64_t begun_ = 0;
    };

    void end_epoch() {
        rows_.insert(rows_.end(), row_.begin(), row_.end());
        std::fill(row_.begin(), row_.end(), 0);
    }
    /// The rows of all epochs so far, one after the other.
    const std::vector<std::uint32_t> &rows() const { return rows_; }

  private:
    static std::uint64_t processor_ns() {
        timespec t{};
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
        return static_cast<std::uint64_t>(t.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(t.tv_nsec);
    }
    void add(unsigned column, std::uint64_t ns) {
        const auto n = static_cast<std::uint32_t>(ns);
        row_[column] += n;
        if (column == shared())
            row_[shared_part()] = std::max(row_[shared_part()], n);
    }

    unsigned processes_;
    std::vector<std::uint32_t> row_, rows_;
};

} // namespace moscope
