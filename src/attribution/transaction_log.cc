// SPDX-License-Identifier: BSD-3-Clause
#include "attribution/transaction_log.hh"

#include <cerrno>

#include <unistd.h>

#include "base/write_error.hh"

namespace moscope {

TransactionLog::TransactionLog(const std::string &path)
    : path_(path), file_(std::fopen(path.c_str(), "wb"), std::fclose) {
    if (!file_)
        fail();
}

void TransactionLog::write(const TransactionRecord &r) {
    if (std::fwrite(&r, sizeof r, 1, file_.get()) != 1)
        fail();
}

void TransactionLog::restart() {
    flush();
    if (ftruncate(fileno(file_.get()), 0) != 0)
        fail();
    std::rewind(file_.get());
}

void TransactionLog::flush() {
    if (std::fflush(file_.get()) != 0)
        fail();
}

void TransactionLog::fail() const { throw write_error(path_, errno); }

} // namespace moscope
