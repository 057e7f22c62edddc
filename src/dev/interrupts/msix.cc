// SPDX-License-Identifier: BSD-3-Clause
#include "dev/interrupts/msix.hh"

namespace moscope::dev {

void Msix::set_control(std::uint16_t control) {
    control_ = control;
    send_pending();
}

void Msix::fire(unsigned v) {
    if (v >= table_.size() || !enabled())
        return;
    table_[v].pending = 1;
    send_pending();
}

void Msix::send_pending() {
    if (!enabled() || (control_ & kMaskAll))
        return;
    for (Entry &e : table_)
        if (e.pending && !(e.word[3] & 1)) {
            e.pending = 0;
            target_.msi(e.word[0] | std::uint64_t{e.word[1]} << 32, e.word[2]);
        }
}

std::uint64_t Msix::read_table(Addr offset, unsigned size) const {
    std::uint64_t value = 0;
    for (unsigned i = 0; i < size; ++i) {
        const Addr at = offset + i;
        if (at / kEntryBytes < table_.size()) {
            const std::uint32_t word = table_[at / kEntryBytes].word[at % kEntryBytes / 4];
            value |= std::uint64_t{word >> (8 * (at % 4)) & 0xff} << (8 * i);
        }
    }
    return value;
}

void Msix::write_table(Addr offset, std::uint64_t value, unsigned size) {
    for (unsigned i = 0; i < size; ++i) {
        const Addr at = offset + i;
        if (at / kEntryBytes >= table_.size())
            break;
        std::uint32_t &word = table_[at / kEntryBytes].word[at % kEntryBytes / 4];
        const unsigned shift = 8 * (at % 4);
        word = (word & ~(0xffu << shift)) | static_cast<std::uint32_t>(value >> (8 * i) & 0xff) << shift;
    }
    send_pending();
}

std::uint64_t Msix::read_pending(Addr offset, unsigned size) const {
    std::uint64_t value = 0;
    for (unsigned bit = 0; bit < 8 * size; ++bit) {
        const Addr v = 8 * offset + bit;
        if (v < table_.size() && table_[v].pending)
            value |= 1ull << bit;
    }
    return value;
}

void Msix::reset() {
    for (Entry &e : table_)
        e = {};
    control_ = 0;
}

} // namespace moscope::dev
