// SPDX-License-Identifier: BSD-3-Clause
// Every transaction of detailed mode as a record of a plain file, for the front end to turn into columns
// (src/python/moscope/runs/transactions.py). src/schema/records.py describes the record. Times are femtoseconds.
#pragma once

#include <cstdio>
#include <memory>
#include <string>

#include "schema/records.hh"

namespace moscope {

class TransactionLog {
  public:
    /// UserError if the file cannot be written.
    explicit TransactionLog(const std::string &path);

    void write(const TransactionRecord &);
    /// Forgets all that was written.
    void restart();
    /// Everything so far is in the file.
    void flush();

  private:
    [[noreturn]] void fail() const;

    std::string path_;
    std::unique_ptr<std::FILE, int (*)(std::FILE *)> file_;
};

} // namespace moscope
