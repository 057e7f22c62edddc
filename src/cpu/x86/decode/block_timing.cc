// SPDX-License-Identifier: BSD-3-Clause
// What detailed mode needs of a decoded block before it first runs there: the timing of its operations, and the
// operations at which a line of code is fetched.
#include <cstdint>
#include <mutex>
#include <span>
#include <vector>

#include "cpu/x86/decode/block.hh"
#include "cpu/x86/timed/op_timing.hh"

namespace moscope::x86 {

namespace {

Mode mode_of(const Block &b) { return static_cast<Mode>((b.key & 3) - 1); }

} // namespace

/// Gives each operation its timing from its own bytes, without a look at the others. False: that cannot be done.
bool BlockCache::number_by_heads(Block &b, std::span<const std::uint8_t> code) {
    if (b.crosses)
        return false;
    for (unsigned i = 0; i < b.count; ++i) {
        Op &op = b.ops()[i];
        if (std::size_t{op.start} + op.length > code.size())
            return false;
        const std::uint32_t n = timings_->number_of(code.subspan(op.start, op.length), op.timing, mode_of(b));
        if (n == TimingTable::kUnknown)
            return false;
        op.timing = n;
    }
    return true;
}

void BlockCache::time(Block &b) {
    const std::byte *bytes = phys_.host(PhysAddr(b.key >> 2));
    const std::size_t size = !bytes      ? 0
                             : b.crosses ? kLongest
                                         : b.bytes(); // none of code in device memory: a cycle for each
    const std::span code(reinterpret_cast<const std::uint8_t *>(bytes), size);
    const std::lock_guard lock(map_->timing);
    if (b.timed)
        return;
    if (!number_by_heads(b, code)) {
        const std::vector<TimedOp> all = timing_of(code, mode_of(b), b.count);
        for (unsigned i = 0; i < b.count; ++i)
            b.ops()[i].timing = timings_->number(all[i]);
    }
    b.ops()[b.count].timing = 0;
    // The line of an instruction's last byte is fetched at that instruction. `fetched`: end of the lines fetched so
    // far, counted from the block's first byte.
    const Addr first = b.key >> 2;
    unsigned fetched = kLineBytes - line_offset(first);
    for (unsigned i = 0; bytes && !b.crosses && i <= b.count; ++i) {
        Op &op = b.ops()[i];
        const unsigned end = op.start + op.length;
        if (end <= fetched)
            continue;
        op.fetches = true;
        op.timing = timings_->apart(op.timing);
        fetched = static_cast<unsigned>(line_of(first + end - 1) + kLineBytes - first);
    }
    b.ordinary.store(!b.crosses, std::memory_order_release);
    b.timed.store(true, std::memory_order_release);
}

} // namespace moscope::x86
