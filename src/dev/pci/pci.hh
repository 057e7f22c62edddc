// SPDX-License-Identifier: BSD-3-Clause
// One function of a PCI device (PCI local bus specification 3.0, chapter 6): its configuration space with a mask of the
// bits that software may write, base address registers with sizing, the capability list, INTx. The host bridge
// (dev/pci/pci_host.hh) routes accesses here. Configuration space is 4096 bytes; ordinary devices use 256.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "dev/device.hh"

namespace moscope::dev {

/// Registers of the type 0 header.
namespace pci {
enum : unsigned {
    kVendor = 0x00,
    kCommand = 0x04, ///< 2 memory space, 4 bus master, 400h no INTx
    kStatus = 0x06,  ///< 8 INTx pending, 10h capability list
    kRevision = 0x08,
    kHeaderType = 0x0e,
    kBar0 = 0x10,
    kSubsystem = 0x2c,
    kCapabilities = 0x34,
    kInterruptLine = 0x3c,
    kInterruptPin = 0x3d,
};
enum : std::uint16_t { kMemorySpace = 2, kBusMaster = 4, kNoIntx = 0x400, kIntxPending = 8, kHasCapabilities = 0x10 };
} // namespace pci

class PciFunction;

/// Guest memory that a driver has given a device for the ring of a queue: one of its areas.
struct RingArea {
    std::string device;
    unsigned queue = 0;
    std::string part;
    Addr first = 0;
    std::uint64_t bytes = 0;
};

/// The bridge above a function, which the function notifies.
class PciUpstream {
  public:
    virtual ~PciUpstream() = default;
    virtual void decode_changed() = 0; ///< a base address or the memory space bit was written
    virtual void intx_changed() = 0;
};

class PciFunction {
  public:
    struct Identity {
        std::uint16_t vendor = 0;
        std::uint16_t device = 0;
        std::uint32_t class_code = 0; ///< class, subclass, programming interface: 24 bits
        std::uint8_t revision = 0;
        std::uint16_t subsystem_vendor = 0;
        std::uint16_t subsystem = 0;
    };
    static constexpr unsigned kConfigBytes = 4096;
    static constexpr unsigned kBars = 6;

    /// `extended`: the configuration space above 256 bytes exists; else it reads as ones.
    PciFunction(std::string name, const Identity &identity, bool extended = false);
    virtual ~PciFunction() = default;
    PciFunction(const PciFunction &) = delete;
    PciFunction &operator=(const PciFunction &) = delete;

    const std::string &name() const { return name_; }

    // --- configuration space: any offset below 4096, sizes 1 to 8 that do not cross its end --------------------------
    std::uint64_t read_config(unsigned offset, unsigned size);
    void write_config(unsigned offset, std::uint64_t value, unsigned size);

    /// Registers behind base address register `bar`; offset + size lies within it.
    virtual std::uint64_t read_bar(Requester, unsigned /*bar*/, Addr /*offset*/, unsigned /*size*/) { return ~0ull; }
    virtual void write_bar(Requester, unsigned /*bar*/, Addr /*offset*/, std::uint64_t /*value*/, unsigned /*size*/) {}

    struct Window {
        Addr base;
        std::uint64_t size;
    };
    /// Where `bar` is decoded; nothing while memory space is off or the register is unused.
    std::optional<Window> decoded(unsigned bar) const;
    /// Size of `bar`; 0: the register is unused.
    std::uint64_t bar_size(unsigned bar) const { return bars_[bar].size; }
    bool bar_is_64bit(unsigned bar) const { return bars_[bar].is_64bit; }

    bool intx() const { return intx_ && !(word(pci::kCommand) & pci::kNoIntx); }
    unsigned interrupt_pin() const { return config_[pci::kInterruptPin]; } ///< 1 is INTA; 0: none
    bool bus_master() const { return word(pci::kCommand) & pci::kBusMaster; }
    void attach(PciUpstream &upstream) { upstream_ = &upstream; }
    void set_multifunction() { set8(pci::kHeaderType, 0x80); }

    /// Power-on state of what the guest can write.
    virtual void reset();
    virtual void archive(Archive &);
    virtual void describe(Firmware &) const {}
    /// The rings that are in use.
    virtual std::vector<RingArea> rings() const { return {}; }

  protected:
    /// Called before software reads and after it has written [offset, offset + size).
    virtual void config_reading(unsigned /*offset*/, unsigned /*size*/) {}
    virtual void config_written(unsigned /*offset*/, unsigned /*size*/) {}

    // Values at power-on, set by constructors; `writable` is the mask of what software may change.
    void set8(unsigned offset, std::uint8_t value, std::uint8_t writable = 0);
    void set16(unsigned offset, std::uint16_t value, std::uint16_t writable = 0);
    void set32(unsigned offset, std::uint32_t value, std::uint32_t writable = 0);
    /// A memory base address register; size is a power of two, at least 16 bytes. A 64-bit one takes two registers.
    void add_bar(unsigned bar, std::uint64_t size, bool is_64bit);
    /// Appends a capability and returns its offset. `content` begins after its identifier and link.
    unsigned add_capability(std::uint8_t id, const std::vector<std::uint8_t> &content);
    void use_intx() { set8(pci::kInterruptPin, 1); }
    void set_intx(bool level);

    // What configuration space holds now.
    std::uint8_t byte(unsigned offset) const { return config_[offset]; }
    std::uint16_t word(unsigned offset) const {
        return static_cast<std::uint16_t>(byte(offset) | byte(offset + 1) << 8);
    }
    std::uint32_t dword(unsigned offset) const {
        return word(offset) | static_cast<std::uint32_t>(word(offset + 2)) << 16;
    }
    void put8(unsigned offset, std::uint8_t value) { config_[offset] = value; }
    void put32(unsigned offset, std::uint32_t value);

  private:
    struct Bar {
        std::uint64_t size = 0;
        bool is_64bit = false;
    };
    std::string name_;
    unsigned bytes_; ///< of configuration space
    std::array<std::uint8_t, kConfigBytes> config_{}, power_on_{}, writable_{};
    std::array<Bar, kBars> bars_{};
    unsigned last_capability_ = 0, next_capability_ = 0x40;
    bool intx_ = false;
    PciUpstream *upstream_ = nullptr;
};

} // namespace moscope::dev
