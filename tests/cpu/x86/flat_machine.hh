// SPDX-License-Identifier: BSD-3-Clause
// The smallest machine around a core, for tests: flat memory, a clock that counts instructions, ports and device
// registers that read as ones, and a core in 64-bit mode without paging's protection: one identity map of 1-GiB pages.
#pragma once

#include <cstring>
#include <initializer_list>
#include <vector>

#include "cpu/x86/core.hh"
#include "cpu/x86/decode/block.hh"
#include "cpu/x86/family10h_model.hh"

namespace moscope::x86::test {

class FlatMachine : public Platform {
  public:
    static constexpr std::uint64_t kBytes = 4 << 20;
    static constexpr Addr kTables = 0x3f0000; ///< page tables; free below

    explicit FlatMachine(std::uint64_t bytes = kBytes) : memory(bytes) {
        phys.memory = memory.data();
        phys.dram = bytes;
        blocks.add_core(core);
    }

    /// 64-bit mode, privilege level 0, all segments flat, the first 4 GiB mapped on themselves for everybody.
    void long_mode() {
        const Addr pml4 = kTables, pdpt = kTables + 0x1000;
        write<std::uint64_t>(pml4, pdpt | 7);
        for (unsigned i = 0; i < 4; ++i)
            write<std::uint64_t>(pdpt + 8 * i, (std::uint64_t{i} << 30) | 0x87);
        core.cr3 = pml4;
        core.cr0 = cr0::pe | cr0::pg | cr0::wp | cr0::et | cr0::ne;
        core.cr4 = cr4::pae | cr4::osfxsr | cr4::osxmmexcpt;
        core.efer = efer::lme | efer::lma | efer::nxe | efer::sce;
        for (unsigned s = 0; s < kSegs; ++s)
            core.seg[s] = {0, 0xffffffff, static_cast<std::uint16_t>(s == cs ? 8 : 16),
                           static_cast<std::uint16_t>(s == cs ? 0xa09b : 0xc093)};
        core.r[rsp] = 0x200000;
        core.mode_changed();
    }
    void code(Addr at, std::initializer_list<int> bytes) {
        Addr a = at;
        for (int b : bytes)
            memory[a++] = static_cast<std::byte>(b);
        blocks.written_range(PhysAddr(at), bytes.size());
        core.rip = at;
    }
    template <class T> T read(Addr a) const {
        T x;
        std::memcpy(&x, memory.data() + a, sizeof x);
        return x;
    }
    template <class T> void write(Addr a, T x) {
        std::memcpy(memory.data() + a, &x, sizeof x);
        blocks.written_range(PhysAddr(a), sizeof x);
    }

    std::uint64_t mmio_read(Core &, PhysAddr, unsigned size) override { return ~std::uint64_t{0} >> (64 - 8 * size); }
    void mmio_write(Core &, PhysAddr, std::uint64_t, unsigned) override {}
    std::uint64_t io_read(Core &, std::uint16_t, unsigned size) override {
        return ~std::uint64_t{0} >> (64 - 8 * size);
    }
    void io_write(Core &, std::uint16_t, std::uint64_t, unsigned) override {}
    std::uint64_t cycles(Core &c) override { return c.retired; }
    bool msr_read(Core &, std::uint32_t, std::uint64_t &) override { return false; }
    bool msr_write(Core &, std::uint32_t, std::uint64_t) override { return false; }
    void m5op(Core &, unsigned function) override { last_m5op = function; }

    std::vector<std::byte> memory;
    PhysMap phys;
    BlockCache blocks{phys};
    CpuModel model = family10h_model();
    Core core{0, *this, phys, blocks, model};
    unsigned last_m5op = ~0u;
};

} // namespace moscope::x86::test
