// SPDX-License-Identifier: BSD-3-Clause
// The core's data port: how data accesses reach DRAM once their addresses are translated. It has two forms with the
// same members. The functional form copies bytes and takes no time. The timed form goes through the core in detailed
// mode (timed/timed_core.hh). with_data_port() chooses the form; other code on the access path asks for the mode only
// for short cuts. The forms have no virtual functions: the access path is compiled once for each.
#pragma once

#include <cstring>

#include "cpu/x86/core.hh"
#include "cpu/x86/decode/block.hh"
#include "cpu/x86/timed/short_paths.hh"

namespace moscope::x86 {

class FunctionalDataPort {
  public:
    explicit FunctionalDataPort(Core &c) : c_(c) {}

    /// An access whose translation the TLB holds; false: there is no short cut, and the access takes the general path.
    bool load_translated(Addr, void *, unsigned, bool) { return false; }
    bool store_translated(Addr, const void *, unsigned, bool) { return false; }
    bool modify_ahead(Addr, unsigned, void (*)(void *, void *), void *, bool) { return false; }
    /// Sets the linear address of the accesses that follow.
    void at_linear(Addr) {}
    /// A data access to a page (its address shifted right by log2 of its size).
    void l1_tlb(std::uint64_t, bool /*global*/) {}

    /// Accesses to DRAM within a page, whose bytes are at `host`.
    void load(PhysAddr, const std::byte *host, void *to, unsigned size) { std::memcpy(to, host, size); }
    void store(PhysAddr, std::byte *host, const void *from, unsigned size) { std::memcpy(host, from, size); }
    void modify(PhysAddr, std::byte *host, unsigned, void (*f)(void *, void *), void *context, bool) {
        f(context, host);
    }
    /// A locked access to two pages.
    void modify_across(const PhysAddr (&at)[2], const unsigned (&size)[2], void (*f)(void *, void *), void *context) {
        std::uint8_t bytes[kLineBytes];
        std::byte *const host[2] = {c_.phys.host(at[0]), c_.phys.host(at[1])};
        std::memcpy(bytes, host[0], size[0]);
        std::memcpy(bytes + size[0], host[1], size[1]);
        f(context, bytes);
        std::memcpy(host[0], bytes, size[0]);
        std::memcpy(host[1], bytes + size[0], size[1]);
    }
    /// The same for the page walker.
    template <class T> T walk_load(Addr dram) {
        T entry;
        std::memcpy(&entry, c_.phys.memory + dram, sizeof entry);
        return entry;
    }
    void walk_modify(PhysAddr, std::byte *host, unsigned, void (*f)(void *, void *), void *context) {
        f(context, host);
    }

    /// CLFLUSH: when it is done, no cache holds the line of this address.
    void flush(PhysAddr) {}
    /// A software prefetch of the line at this linear address.
    void prefetch(Addr, bool /*write*/, bool /*user*/) {}

    void begin_device_access() {}
    void end_device_access(std::uint64_t) {}
    /// Waits until all stores of the core are performed.
    void fence() {}
    /// Orders non-temporal stores before later stores.
    void store_fence() {}
    /// After a store to decoded code.
    void wrote_code(PhysAddr at, unsigned size) { c_.blocks->written(at, size); }

  private:
    Core &c_;
};

class TimedDataPort {
  public:
    explicit TimedDataPort(Core &c) : c_(c), timed_(*c.timed) {}

    bool load_translated(Addr va, void *to, unsigned size, bool user) {
        if (Overlap *ahead = timed_.looks_ahead(); __builtin_expect(ahead != nullptr, 0)) {
            ahead->peek(va, to, size, user);
            return true;
        }
        Addr d;
        if (!translated(va, size, user, 0, d))
            return false;
        timed_.at_linear(va);
        timed_.load_line(d, to, size);
        return true;
    }
    bool store_translated(Addr va, const void *from, unsigned size, bool user) {
        if (Overlap *ahead = timed_.looks_ahead(); __builtin_expect(ahead != nullptr, 0)) {
            ahead->keep(va, from, size, user);
            return true;
        }
        Addr d;
        if (!translated(va, size, user, Tlb::Entry::kWritable | Tlb::Entry::kDirty, d))
            return false;
        timed_.at_linear(va);
        timed_.store_line(d, from, size);
        if (__builtin_expect(c_.blocks->guarded_dram(c_, d, size), 0))
            timed_.wrote_code(c_.phys.phys_address(d), size);
        return true;
    }
    /// A read-modify-write while the core looks ahead.
    bool modify_ahead(Addr va, unsigned size, void (*f)(void *, void *), void *context, bool user) {
        Overlap *ahead = timed_.looks_ahead();
        if (ahead)
            ahead->modify(va, size, f, context, user);
        return ahead != nullptr;
    }
    void at_linear(Addr va) { timed_.at_linear(va); }
    void l1_tlb(std::uint64_t page, bool global) { timed_.l1_tlb(page, global); }

    void load(PhysAddr at, const std::byte *, void *to, unsigned size) { timed_.load(at, to, size); }
    void store(PhysAddr at, std::byte *, const void *from, unsigned size) { timed_.store(at, from, size); }
    void modify(PhysAddr at, std::byte *, unsigned size, void (*f)(void *, void *), void *context, bool locked) {
        timed_.modify(at, size, f, context, locked);
    }
    void modify_across(const PhysAddr (&at)[2], const unsigned (&size)[2], void (*f)(void *, void *), void *context) {
        timed_.modify_across(at, size, f, context);
    }
    template <class T> T walk_load(Addr dram) { return timed_.walk_load<T>(dram); }
    void walk_modify(PhysAddr at, std::byte *, unsigned size, void (*f)(void *, void *), void *context) {
        timed_.walk_modify(at, size, f, context);
    }

    void flush(PhysAddr at) { timed_.flush(at); }
    void prefetch(Addr va, bool write, bool user) {
        if (Overlap *ahead = timed_.looks_ahead()) {
            ahead->prefetch_ahead(va, write, user);
            return;
        }
        timed_.at_linear(va);
        timed_.prefetch(va, write, user);
    }

    void begin_device_access() { timed_.begin_device_access(); }
    void end_device_access(std::uint64_t cycles) { timed_.end_device_access(cycles); }
    void fence() { timed_.fence(); }
    void store_fence() { timed_.store_fence(); }
    void wrote_code(PhysAddr at, unsigned size) { timed_.wrote_code(at, size); }

  private:
    /// Translates most accesses: to DRAM, within a line, in a page whose TLB entry allows them. `dram` is the address
    /// there. False: the access takes the general path.
    bool translated(Addr va, unsigned size, bool user, Addr need, Addr &dram) {
        if (line_offset(va) + size > kLineBytes || c_.check_alignment || (c_.watched & Core::kWatchData))
            return false;
        const Tlb::Entry &e = c_.tlbs[user].at(va);
        if (e.page != (va & ~Addr{0xfff}) || (e.phys & need) != need)
            return false;
        dram = c_.phys.dram_address(e.at(va));
        if (dram == PhysMap::kNone)
            return false;
        timed_.l1_tlb(va >> e.shift(), e.phys & Tlb::Entry::kGlobal);
        return true;
    }

    Core &c_;
    TimedCore &timed_;
};

/// f(port) with the form of the core's present mode.
template <class F> inline decltype(auto) with_data_port(Core &c, F &&f) {
    return c.timed ? f(TimedDataPort(c)) : f(FunctionalDataPort(c));
}

} // namespace moscope::x86
