// SPDX-License-Identifier: BSD-3-Clause
// Every transaction of detailed mode as a record of a plain file, for the front end to turn into columns
// (src/python/moscope/run/transactions.py, which knows the layout). Times are femtoseconds.
#pragma once

#include <array>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>

#include "mem/path.hh"

namespace moscope {

struct TransactionRecord {
    std::int64_t issued = 0, done = 0, exposed = 0; ///< exposed: stall of the core that was charged to it
    std::uint64_t line = 0, va = 0, pc = 0, address_space = 0, writer_pc = 0;
    std::array<std::int64_t, kSegments> segments{}; ///< add up to done - issued
    std::uint16_t hops = 0;
    std::uint8_t core = 0;
    std::uint8_t writer = 0xff;                                     ///< core that wrote the line last; 0xff: none has
    std::uint8_t kind = 0;                                          ///< AccessKind
    std::uint8_t miss = 0;                                          ///< MissClass
    std::uint8_t supplier = 0;                                      ///< machine type of the protocol
    std::uint8_t flags = 0;                                         ///< what follows, or-ed
    std::uint16_t supplier_number = 0xffff, supplier_chip = 0xffff; ///< as Access has them; 0xffff: none
    std::uint16_t probes = 0;
    std::uint8_t supplier_state = 0xff;
    std::uint8_t unused = 0;
    std::uint32_t use = 0; ///< of the line: as LineRow has it
    std::uint32_t unused2 = 0;
    static constexpr std::uint8_t kWalk = 1, kUser = 2;
    /// No transaction of its own: a wait for room in the store buffer, whose oldest store's transaction comes by itself.
    static constexpr std::uint8_t kBufferWait = 4;
};
static_assert(sizeof(TransactionRecord) == 152);

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
