// SPDX-License-Identifier: BSD-3-Clause
// A flat machine with descriptor tables, a task-state segment and a handler for each vector, for tests of the system
// side. Each handler is one HLT at a place of its own, so the address at which the core halts shows which vector was
// taken.
#pragma once

#include <functional>
#include <map>

#include "cpu/x86/flat_machine.hh"
#include "cpu/x86/system/interrupts.hh"

namespace moscope::x86::test {

class SystemMachine : public FlatMachine {
  public:
    static constexpr Addr kGdt = 0x10000, kIdt = 0x11000, kTss = 0x12000, kHandlers = 0x20000, kPointer = 0x500;
    static constexpr Addr kStack0 = 0x80000, kStackIst1 = 0x90000;
    // Selectors of the table that the constructor writes.
    static constexpr std::uint16_t kCode32 = 0x08, kData = 0x10, kCode64 = 0x18, kFree = 0x20, kCode16 = 0x28,
                                   kData16 = 0x30, kTask = 0x38, kUserCode32 = 0x48, kUserData = 0x50,
                                   kUserCode64 = 0x58, kSpare = 0x60;

    SystemMachine() {
        set(kCode32, descriptor(0, 0xfffff, 0xc09b));
        set(kData, descriptor(0, 0xfffff, 0xc093));
        set(kCode64, descriptor(0, 0xfffff, 0xa09b));
        set(kCode16, descriptor(0, 0xffff, 0x009b));
        set(kData16, descriptor(0, 0xffff, 0x0093));
        set(kTask, descriptor(kTss, 0xfff, 0x0089));
        set(kUserCode32, descriptor(0, 0xfffff, 0xc0fb));
        set(kUserData, descriptor(0, 0xfffff, 0xc0f3));
        set(kUserCode64, descriptor(0, 0xfffff, 0xa0fb));
        for (unsigned v = 0; v < 256; ++v)
            write<std::uint8_t>(kHandlers + 16 * v, 0xf4);
        write<std::uint16_t>(kPointer, 0xfff);
        write<std::uint64_t>(kPointer + 2, kGdt);
    }

    static std::uint64_t descriptor(std::uint64_t base, std::uint64_t limit, std::uint64_t attr) {
        return (limit & 0xffff) | (base & 0xffffff) << 16 | attr << 40 | (limit >> 16 & 15) << 48 |
               (base >> 24 & 255) << 56;
    }
    void set(std::uint16_t selector, std::uint64_t d) { write(kGdt + (selector & 0xfff8u), d); }

    /// A long-mode gate; attr 0x8e is an interrupt gate, 0x8f a trap gate, 0xee an interrupt gate of DPL 3.
    void gate64(unsigned v, unsigned attr = 0x8e, std::uint16_t selector = kCode64, unsigned ist = 0) {
        const std::uint64_t to = kHandlers + 16 * v;
        write<std::uint64_t>(kIdt + 16 * v, (to & 0xffff) | std::uint64_t{selector} << 16 | std::uint64_t{ist} << 32 |
                                                std::uint64_t{attr} << 40 | (to >> 16 & 0xffff) << 48);
        write<std::uint64_t>(kIdt + 16 * v + 8, to >> 32);
    }
    void gate32(unsigned v, unsigned attr = 0x8e, std::uint16_t selector = kCode32) {
        const std::uint64_t to = kHandlers + 16 * v;
        write<std::uint64_t>(kIdt + 8 * v, (to & 0xffff) | std::uint64_t{selector} << 16 | std::uint64_t{attr} << 40 |
                                               (to >> 16 & 0xffff) << 48);
    }

    Segment segment(std::uint16_t selector) {
        const auto d = read<std::uint64_t>(kGdt + (selector & 0xfff8u));
        Segment s;
        s.selector = selector;
        s.base = (d >> 16 & 0xffffff) | (d >> 56) << 24;
        s.attr = static_cast<std::uint16_t>(d >> 40 & 0xf0ff);
        s.limit = static_cast<std::uint32_t>((d & 0xffff) | (d >> 32 & 0xf0000));
        if (s.attr & Segment::kGranular)
            s.limit = s.limit << 12 | 0xfff;
        return s;
    }

    /// 64-bit mode at privilege level 0 with all tables in use.
    void kernel64() {
        long_mode();
        begin_task(kCode64, [this](unsigned v) { gate64(v); });
        write<std::uint64_t>(kTss + 4, kStack0);
        write<std::uint64_t>(kTss + 36, kStackIst1);
    }
    /// 32-bit protected mode without paging at privilege level 0.
    void kernel32() {
        core.cr0 = cr0::pe | cr0::et | cr0::ne;
        begin_task(kCode32, [this](unsigned v) { gate32(v); });
        write<std::uint32_t>(kTss + 4, kStack0);
        write<std::uint32_t>(kTss + 8, kData);
    }
    /// A gate for each vector, the tables, a task without an I/O permission map, and privilege level 0.
    template <class F> void begin_task(std::uint16_t code_selector, F gate) {
        for (unsigned v = 0; v < 256; ++v)
            gate(v);
        tables();
        core.tr.attr = 0x8b;
        write<std::uint16_t>(kTss + 0x66, 0x68);
        level(code_selector, kData);
    }
    /// CS and all data segments, the privilege level with them.
    void level(std::uint16_t code_selector, std::uint16_t data_selector) {
        core.cpl = code_selector & 3;
        for (unsigned s = 0; s < kSegs; ++s)
            core.seg[s] = segment(s == cs ? code_selector : data_selector);
        core.r[rsp] = core.cpl ? 0x60000 : 0x70000;
        core.mode_changed();
    }
    void user64() { level(kUserCode64 | 3, kUserData | 3); }
    void user32() { level(kUserCode32 | 3, kUserData | 3); }

    /// Page tables of 4-KiB pages for the first 2 MiB, in place of the large ones; one large page for the tables.
    void small_pages() {
        const Addr pd = kTables + 0x2000, pt = kTables + 0x3000;
        write<std::uint64_t>(kTables + 0x1000, pd | 7);
        write<std::uint64_t>(pd, pt | 7);
        write<std::uint64_t>(pd + 8, 0x200087);
        for (unsigned i = 0; i < 512; ++i)
            write<std::uint64_t>(pt + 8 * i, (Addr{i} << 12) | 7);
        core.flush_tlb(true);
    }
    void page(Addr va, std::uint64_t entry) {
        write<std::uint64_t>(kTables + 0x3000 + (va >> 12) * 8, entry);
        core.flush_tlb(true);
    }

    Exit run(std::uint64_t budget = 1000) { return core.run(budget); }
    /// Runs until a handler halts; its vector, or -1.
    int vector_taken(std::uint64_t budget = 1000) {
        if (core.run(budget) != Exit::halt)
            return -1;
        const Addr at = core.rip - 1 - kHandlers;
        return at % 16 == 0 && at < 4096 ? static_cast<int>(at / 16) : -1;
    }
    /// Runs the bytes and then HLT: -1 if they ended there, otherwise the exception.
    int fault(Addr at, std::initializer_list<int> bytes) {
        core.halted = false;
        code(at, bytes);
        write<std::uint8_t>(at + bytes.size(), 0xf4);
        return vector_taken();
    }
    /// The n-th item on the stack, counted from its top.
    template <class T = std::uint64_t> T pushed(unsigned n) const {
        return read<T>(core.seg[ss].base + core.r[rsp] + n * sizeof(T));
    }

    std::uint64_t io_read(Core &, std::uint16_t port, unsigned size) override {
        return ports.contains(port) ? ports[port] : FlatMachine::io_read(core, port, size);
    }
    void io_write(Core &, std::uint16_t port, std::uint64_t value, unsigned) override {
        ports[port] = value;
        ++writes;
    }
    std::map<std::uint16_t, std::uint64_t> ports;
    unsigned writes = 0;

  private:
    void tables() {
        core.gdtr = {kGdt, 0xfff};
        core.idtr = {kIdt, 0xfff};
        core.tr = {kTss, 0xfff, kTask, 0x8b};
        core.ldtr = {};
        core.ldtr.attr = 0;
        core.flags.set_value(Flags::fixed);
    }
};

/// A local APIC that returns the vectors that a test gives it.
class FakeApic : public dev::InterruptSource {
  public:
    explicit FakeApic(Core &c) : core(c) { c.interrupts = this; }
    void interrupt(int v) {
        vector = v;
        core.signals.raise(dev::CoreSignals::intr);
    }
    int acknowledge() override {
        core.signals.lower(dev::CoreSignals::intr);
        return vector;
    }
    std::uint8_t cr8() const override { return priority; }
    void set_cr8(std::uint8_t p) override { priority = p; }
    std::uint64_t apic_base() const override { return base; }
    bool set_apic_base(std::uint64_t b) override {
        base = b;
        return true;
    }
    void init_reset() override { ++inits; }

    Core &core;
    int vector = -1;
    std::uint8_t priority = 0;
    std::uint64_t base = 0xfee00900;
    unsigned inits = 0;
};

} // namespace moscope::x86::test
