// SPDX-License-Identifier: BSD-3-Clause
// Writes every transaction of detailed mode as a record to a plain file, which the front end turns into columns
// (src/python/moscope/runs/transactions.py). src/schema/records.py describes the record. Times are femtoseconds.
// All functions throw UserError if the file cannot be written.
#pragma once

#include <cstdio>
#include <memory>
#include <string>

#include "schema/records.hh"

namespace moscope {

class TransactionLog {
  public:
    explicit TransactionLog(const std::string &path);

    void write(const TransactionRecord &);
    /// Empties the file.
    void restart();
    /// Returns when all records so far are in the file.
    void flush();

  private:
    [[noreturn]] void fail() const;

    std::string path_;
    std::unique_ptr<std::FILE, int (*)(std::FILE *)> file_;
};

} // namespace moscope
