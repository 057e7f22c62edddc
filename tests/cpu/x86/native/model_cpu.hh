// SPDX-License-Identifier: BSD-3-Clause
// Runs an instruction on the model: one core at privilege level 3, with page tables that show code
// and data at the addresses at which the host has them, and the same rights.
#pragma once

#include <sys/mman.h>

#include <memory>

#include "cpu/x86/core.hh"
#include "cpu/x86/decode/block.hh"
#include "cpu/x86/family10h_model.hh"
#include "cpu/x86/native/snapshot.hh"

namespace moscope::x86::native {

class NoPlatform final : public Platform {
  public:
    std::uint64_t mmio_read(Core &, PhysAddr, unsigned) override { return ~std::uint64_t{0}; }
    void mmio_write(Core &, PhysAddr, std::uint64_t, unsigned) override {}
    std::uint64_t io_read(Core &, std::uint16_t, unsigned) override { return ~std::uint64_t{0}; }
    void io_write(Core &, std::uint16_t, std::uint64_t, unsigned) override {}
    std::uint64_t cycles(Core &) override { return ++now_; }
    bool msr_read(Core &, std::uint32_t, std::uint64_t &) override { return false; }
    bool msr_write(Core &, std::uint32_t, std::uint64_t) override { return false; }
    void m5op(Core &, unsigned) override {}

  private:
    std::uint64_t now_ = 0;
};

class ModelCpu {
  public:
    static constexpr std::uint64_t kMemory = 1 << 20;
    static constexpr std::uint64_t kTables = 0x1000, kCodePhys = 0x10000, kDataPhys = 0x20000;

    ModelCpu() {
        phys_.memory = static_cast<std::byte *>(
            mmap(nullptr, kMemory, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
        phys_.dram = kMemory;
        blocks_ = std::make_unique<BlockCache>(phys_);
        core_ = std::make_unique<Core>(0, platform_, phys_, *blocks_, model_);
        blocks_->add_core(*core_);
        constexpr std::uint64_t kUser = 0x67, kReadUser = 0x65, kNoExecute = 1ull << 63; // present, accessed, dirty
        const auto entry = [&](std::uint64_t table, std::uint64_t index, std::uint64_t value) {
            std::memcpy(memory(table + index * 8), &value, 8);
        };
        entry(kTables, 0, (kTables + 0x1000) | kUser);
        entry(kTables + 0x1000, 0, (kTables + 0x2000) | kUser);
        entry(kTables + 0x2000, kCode >> 21 & 511, (kTables + 0x3000) | kUser);
        entry(kTables + 0x2000, kData >> 21 & 511, (kTables + 0x4000) | kUser);
        for (std::uint64_t i = 0; i < 2; ++i) {
            entry(kTables + 0x3000, i, (kCodePhys + i * 0x1000) | kUser);
            entry(kTables + 0x4000, i, (kDataPhys + i * 0x1000) | kUser | kNoExecute);
        }
        entry(kTables + 0x4000, 2, (kDataPhys + 0x2000) | kReadUser | kNoExecute);
        std::memset(memory(kDataPhys + 0x2000), 0x5a, 0x1000);
        Core &c = *core_;
        c.cr0 = cr0::pe | cr0::pg | cr0::wp | cr0::ne | cr0::et | cr0::mp;
        c.cr4 = cr4::pae | cr4::osfxsr | cr4::osxmmexcpt;
        c.efer = efer::lme | efer::lma | efer::sce | efer::nxe;
        c.cr3 = kTables;
        for (Seg s : {fs, gs})
            c.seg[s] = data_segment(kLayouts[0]);
        c.seg[gs].base = kGsBase;
        c.cpl = 3;
        c.flush_tlb(true);
        set_mode(Mode::code64);
    }
    ~ModelCpu() { munmap(phys_.memory, kMemory); }
    ModelCpu(const ModelCpu &) = delete;
    ModelCpu &operator=(const ModelCpu &) = delete;

    Core &core() { return *core_; }
    BlockCache &blocks() { return *blocks_; }
    std::uint8_t *memory(std::uint64_t phys) { return reinterpret_cast<std::uint8_t *>(phys_.memory) + phys; }
    std::uint8_t *data() { return memory(kDataPhys); }

    /// One instruction (a repeated one to its end). `stops`: and the fetch of the next, as for a branch on the host.
    Outcome run(const Bytes &code, std::uint64_t at, const Snapshot &in, Snapshot &out, Mode mode = Mode::code64,
                unsigned layout = 0, bool stops = false) {
        put_int3(memory(kCodePhys), at, stops);
        std::memcpy(memory(kCodePhys + (at - kCode)), code.data(), mapped(code, at));
        Core &c = *core_;
        set(in);
        if (c.mode() != mode || layout != layout_)
            set_mode(mode, layout);
        const std::uint64_t ip = at - code_base(layout);
        c.rip = ip;
        Outcome o;
        for (unsigned rounds = 0; rounds < 1000; ++rounds) {
            c.exit = Exit::none;
            Block *b = blocks_->find(c, true);
            if (!b) {
                c.exit = Exit::fault;
                break;
            }
            c.r[reg_block] = c.rip;
            const Op *op = b->ops();
            do
                op = op->exec(c, op);
            while (op);
            if (c.exit != Exit::restart || c.rip != ip)
                break;
        }
        // A branch is done when it has gone where there is no code; the fetch faults.
        if (stops && c.exit == Exit::none && !blocks_->find(c, true))
            c.exit = Exit::fault;
        if (c.exit == Exit::fault) {
            o.vector = c.fault.vector;
            o.error = c.fault.has_error ? c.fault.error : 0;
            o.address = c.fault.address;
        }
        o.lacking = c.exit == Exit::unmodelled;
        get(out);
        return o;
    }

    void set_mode(Mode mode, unsigned layout = 0) {
        const std::uint16_t size = mode == Mode::code64   ? Segment::kLong
                                   : mode == Mode::code32 ? Segment::kBig
                                                          : std::uint16_t{0};
        core_->seg[cs] = mode == Mode::code16
                             ? Segment{kCode, 0xffff, 0x7, attributes(11)}
                             : Segment{0, 0xffffffff, mode == Mode::code64 ? std::uint16_t{0x33} : std::uint16_t{0x23},
                                       static_cast<std::uint16_t>(attributes(11) | size | Segment::kGranular)};
        for (Seg s : {es, ss, ds})
            core_->seg[s] = data_segment(kLayouts[layout]);
        layout_ = layout;
        core_->mode_changed();
    }

  private:
    static std::uint16_t attributes(unsigned type) {
        return static_cast<std::uint16_t>(Segment::kPresent | 0x60 | Segment::kCodeOrData | type);
    }
    static Segment data_segment(const Layout &l) {
        return {l.base, l.limit, 0x2b,
                static_cast<std::uint16_t>(attributes(l.expand_down ? 7 : 3) | (l.big ? Segment::kBig : 0) |
                                           (l.limit > 0xfffff ? Segment::kGranular : 0))};
    }

    void set(const Snapshot &s) {
        Core &c = *core_;
        std::memcpy(c.r, s.r, sizeof s.r);
        c.flags.set_value(s.flags);
        c.mxcsr = s.fx.mxcsr;
        std::memcpy(c.xmm, s.fx.xmm, sizeof s.fx.xmm);
        c.fpu.control = s.fx.control;
        c.fpu.status = s.fx.status;
        c.fpu.valid = s.fx.valid;
        for (unsigned i = 0; i < 8; ++i)
            c.fpu.st[(c.fpu.top() + i) & 7] = {s.fx.st[i].significand, s.fx.st[i].sign_exponent};
        c.fpu.instruction = c.fpu.operand = c.fpu.opcode = 0;
    }
    void get(Snapshot &s) {
        Core &c = *core_;
        std::memset(&s, 0, sizeof s);
        std::memcpy(s.r, c.r, sizeof s.r);
        s.flags = c.flags.value();
        s.rip = c.rip;
        s.fx.mxcsr = c.mxcsr;
        std::memcpy(s.fx.xmm, c.xmm, sizeof s.fx.xmm);
        s.fx.control = c.fpu.control;
        s.fx.status = c.fpu.status;
        s.fx.valid = c.fpu.valid;
        for (unsigned i = 0; i < 8; ++i) {
            const X87::Reg &r = c.fpu.st[(c.fpu.top() + i) & 7];
            s.fx.st[i].significand = r.significand;
            s.fx.st[i].sign_exponent = r.sign_exponent;
        }
    }

    unsigned layout_ = 0;
    PhysMap phys_;
    NoPlatform platform_;
    CpuModel model_ = test::family10h_model();
    std::unique_ptr<BlockCache> blocks_;
    std::unique_ptr<Core> core_;
};

} // namespace moscope::x86::native
