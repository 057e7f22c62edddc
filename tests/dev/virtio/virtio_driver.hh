// SPDX-License-Identifier: BSD-3-Clause
// A small virtio driver for tests: a board with memory, PCI and one device, found and set up through configuration
// space and registers only, and raw access to the rings for what no honest driver would write.
#pragma once

#include <cstring>
#include <vector>

#include "base/rng.hh"
#include "dev/pci/pci_host.hh"
#include "dev/time.hh"
#include "dev/virtio/virtio_pci.hh"

namespace moscope::dev::test {

struct NoLines final : IrqLine {
    unsigned raised = 0;
    bool level = false;
    void set_irq(unsigned, bool l) override {
        raised += l && !level;
        level = l;
    }
};

struct Messages final : MsiTarget {
    std::vector<std::pair<std::uint64_t, std::uint32_t>> sent;
    void msi(std::uint64_t address, std::uint32_t data) override { sent.push_back({address, data}); }
};

/// 8 MiB of DRAM, whose upper half lies at 4 GiB because of the hole from 4 MiB on.
struct GuestBoard {
    static constexpr std::uint64_t kBytes = 8 << 20;
    static constexpr Addr kHole = 4 << 20;
    std::vector<std::byte> bytes;
    PhysMap map;
    std::uint64_t writes = 0;
    PhysMapDma dma{map, [this](PhysAddr, std::uint64_t) { ++writes; }};
    EventQueue own_queue;
    EventQueue &queue;
    QueueTime time{queue};
    NoLines lines;
    Messages messages;
    AddressSpace ports, memory;
    PciHost host{"pci", {}, lines};

    GuestBoard() : bytes(kBytes), map{bytes.data(), kBytes, kHole}, queue(own_queue) { host.map(ports, memory); }
    /// With the memory and the time of a machine.
    GuestBoard(std::byte *dram, EventQueue &of_machine) : map{dram, kBytes, kHole}, queue(of_machine) {
        host.map(ports, memory);
    }
    template <class T> T get(Addr at) {
        T v{};
        dma.load(PhysAddr(at), v);
        return v;
    }
    template <class T> void put(Addr at, T v) { std::memcpy(map.host(PhysAddr(at)), &v, sizeof v); }
};

/// Drives the device in slot 3.
class Driver {
  public:
    static constexpr unsigned kSlot = 3;
    enum : std::uint16_t { kNext = 1, kWrite = 2, kIndirect = 4 };
    struct Buffer {
        Addr at;
        std::uint32_t size;
        bool writable;
    };

    Driver(GuestBoard &b, PciFunction &f) : b_(b) {
        b.host.add(kSlot, 0, f);
        b.host.reset();
        config(pci::kCommand, pci::kMemorySpace | pci::kBusMaster, 2);
        bar_ = config(pci::kBar0) & ~15u;
        // Vendor capabilities by their type.
        for (unsigned at = config(pci::kCapabilities, 1u); at != 0; at = config(at + 1, 1u)) {
            const unsigned id = config(at, 1u);
            if (id == 0x11)
                msix_capability = at;
            else if (id == 9)
                region[config(at + 3, 1u)] = bar_ + config(at + 8, 4u), capability[config(at + 3, 1u)] = at;
        }
    }

    // --- registers
    // ------------------------------------------------------------------------------------------------------
    std::uint32_t config(unsigned offset, unsigned size = 4) {
        return static_cast<std::uint32_t>(b_.memory.read(0, ecam(offset), size));
    }
    void config(unsigned offset, std::uint32_t value, unsigned size) { b_.memory.write(0, ecam(offset), value, size); }
    std::uint64_t common(unsigned offset, unsigned size) { return b_.memory.read(0, region[1] + offset, size); }
    void common(unsigned offset, std::uint64_t value, unsigned size) {
        b_.memory.write(0, region[1] + offset, value, size);
    }
    std::uint8_t status() { return static_cast<std::uint8_t>(common(0x14, 1)); }
    void notify(unsigned queue = 0) { b_.memory.write(0, region[2] + 4 * queue, queue, 2); }

    std::uint64_t offered() {
        common(0, 0, 4);
        const std::uint64_t low = common(4, 4);
        common(0, 1, 4);
        return low | common(4, 4) << 32;
    }
    /// Up to FEATURES_OK.
    void negotiate(std::uint64_t features) {
        common(0x14, 0, 1);
        common(0x14, 1, 1);
        common(0x14, 3, 1);
        for (unsigned i = 0; i < 2; ++i) {
            common(8, i, 4);
            common(0xc, features >> (32 * i) & 0xffffffff, 4);
        }
        common(0x14, 11, 1);
    }
    /// Queue 0 at `kDescriptors` ..., then DRIVER_OK.
    void start(std::uint64_t features, std::uint16_t size = 8) {
        negotiate(features);
        go(size);
    }
    void go(std::uint16_t size = 8) {
        set_up_queue(size);
        common(0x14, 15, 1);
    }
    void set_up_queue(std::uint16_t size) {
        size_ = size;
        available_ = 0;
        b_.put<std::uint32_t>(kAvailable, 0);
        b_.put<std::uint32_t>(kUsed, 0);
        common(0x16, 0, 2);
        common(0x18, size, 2);
        common(0x20, kDescriptors, 8);
        common(0x28, kAvailable, 8);
        common(0x30, kUsed, 8);
        common(0x1c, 1, 2);
    }
    /// Two vectors with data 0x40 (configuration) and 0x41 (queue).
    void use_msix() {
        config(msix_capability + 2, 0x8000, 2);
        const Addr table = bar_ + (config(msix_capability + 4) & ~7u);
        for (unsigned v = 0; v < 2; ++v) {
            b_.memory.write(0, table + 16 * v, 0xfee00000, 4);
            b_.memory.write(0, table + 16 * v + 8, 0x40 + v, 4);
            b_.memory.write(0, table + 16 * v + 12, 0, 4);
        }
        common(0x10, 0, 2);
        common(0x16, 0, 2);
        common(0x1a, 1, 2);
    }

    // --- rings
    // ------------------------------------------------------------------------------------------------------------
    static constexpr Addr kDescriptors = 0x10000, kAvailable = 0x20000, kUsed = 0x30000;

    void descriptor(unsigned i, Addr at, std::uint32_t size, std::uint16_t flags, std::uint16_t next,
                    Addr table = kDescriptors) {
        b_.put<std::uint64_t>(table + 16 * i, at);
        b_.put<std::uint32_t>(table + 16 * i + 8, size);
        b_.put<std::uint16_t>(table + 16 * i + 12, flags);
        b_.put<std::uint16_t>(table + 16 * i + 14, next);
    }
    void make_available(std::uint16_t head) {
        b_.put<std::uint16_t>(kAvailable + 4 + 2 * (available_ % size_), head);
        set_available(static_cast<std::uint16_t>(available_ + 1));
    }
    void set_available(std::uint16_t index) {
        available_ = index;
        b_.put<std::uint16_t>(kAvailable + 2, index);
    }
    /// Descriptors from `first` on.
    void add(const std::vector<Buffer> &buffers, unsigned first = 0, Addr table = kDescriptors) {
        for (unsigned i = 0; i < buffers.size(); ++i) {
            const bool last = i + 1 == buffers.size();
            descriptor(first + i, buffers[i].at, buffers[i].size,
                       static_cast<std::uint16_t>((buffers[i].writable ? kWrite : 0) | (last ? 0 : kNext)),
                       static_cast<std::uint16_t>(last ? 0 : first + i + 1), table);
        }
        if (table == kDescriptors)
            make_available(static_cast<std::uint16_t>(first));
    }
    /// A random write to a ring, to the device's registers or to its common configuration.
    void scribble(Rng &rng) {
        const auto shift = [&] { return static_cast<unsigned>(rng.below(64)); };
        const unsigned size = 1u << rng.below(4);
        switch (rng.below(3)) {
        case 0:
            b_.put<std::uint32_t>(0x10000 * (1 + rng.below(4)) + 4 * rng.below(40),
                                  static_cast<std::uint32_t>(rng.next() >> shift()));
            break;
        case 1: b_.memory.write(0, bar_ + rng.below(0x8000), rng.next(), size); break;
        default: b_.memory.write(0, region[1] + rng.below(0x40), rng.below(16), size);
        }
    }
    std::uint16_t used_index() { return b_.get<std::uint16_t>(kUsed + 2); }
    std::uint32_t used_length(unsigned i) { return b_.get<std::uint32_t>(kUsed + 4 + 8 * (i % size_) + 4); }
    std::uint32_t used_head(unsigned i) { return b_.get<std::uint32_t>(kUsed + 4 + 8 * (i % size_)); }

    Addr bar() const { return bar_; }
    Addr region[6] = {};
    unsigned capability[6] = {}, msix_capability = 0;

  private:
    Addr ecam(unsigned offset) const { return b_.host.parameters().ecam + (kSlot << 15) + offset; }
    GuestBoard &b_;
    Addr bar_ = 0;
    std::uint16_t size_ = 8, available_ = 0;
};

} // namespace moscope::dev::test
