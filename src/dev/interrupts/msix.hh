// SPDX-License-Identifier: BSD-3-Clause
// MSI-X (PCI local bus specification 3.0, section 6.8.2): the table of vectors and the pending bits of one function.
// The function owns the capability in its configuration space and passes the control word to `set_control`.
#pragma once

#include <vector>

#include "dev/device.hh"
#include "dev/irq.hh"

namespace moscope::dev {

class Msix {
  public:
    static constexpr std::uint8_t kCapability = 0x11;
    static constexpr unsigned kEntryBytes = 16;
    enum : std::uint16_t { kEnable = 0x8000, kMaskAll = 0x4000 }; ///< of the control word

    Msix(unsigned vectors, MsiTarget &target) : table_(vectors), target_(target) {}

    unsigned vectors() const { return static_cast<unsigned>(table_.size()); }
    bool enabled() const { return control_ & kEnable; }
    void set_control(std::uint16_t control);
    /// Sends vector `v`, or keeps it pending while it is masked. No effect if there is no such vector or MSI-X is off.
    void fire(unsigned v);

    /// Any offset and size; bytes beyond the table read as zero.
    std::uint64_t read_table(Addr offset, unsigned size) const;
    void write_table(Addr offset, std::uint64_t value, unsigned size);
    std::uint64_t read_pending(Addr offset, unsigned size) const;

    void reset();
    void archive(Archive &a) {
        for (Entry &e : table_)
            a(e);
        a(control_);
    }

  private:
    struct Entry {
        std::uint32_t word[4] = {0, 0, 0, 1}; ///< address low and high, data, control: bit 0 masks
        std::uint8_t pending = 0;
        void archive(Archive &a) { a(word, pending); }
    };
    void send_pending();

    std::vector<Entry> table_;
    MsiTarget &target_;
    std::uint16_t control_ = 0;
};

} // namespace moscope::dev
