// SPDX-License-Identifier: BSD-3-Clause
#include "cpu/x86/mmu/memory.hh"

#include <algorithm>

#include "cpu/x86/mmu/data_port.hh"
#include "cpu/x86/mmu/paging.hh"

namespace moscope::x86 {

namespace {

/// An access as at most two pieces, one per page.
struct Pieces {
    PhysAddr at[2];
    unsigned size[2] = {0, 0};
    unsigned count = 0;
};

bool is_user(const Core &c, As as) { return as == As::current && c.cpl == 3; }

bool translate_all(Core &c, Addr va, unsigned size, Kind kind, As as, Pieces &p) {
    const bool user = is_user(c, as);
    const unsigned first = std::min<unsigned>(size, static_cast<unsigned>(0x1000 - (va & 0xfff)));
    p.size[0] = first;
    p.size[1] = size - first;
    p.count = first == size ? 1 : 2;
    if (p.count == 2 && c.long_mode() && !canonical(va + first)) { // before any page is looked up
        c.raise(exc_gp, 0);
        c.fault.not_canonical = true;
        return false;
    }
    if (!translate(c, va, kind, user, p.at[0]))
        return false;
    if (p.count == 1)
        return true;
    // Outside of 64-bit mode linear addresses have 32 bits, except those of long mode's tables and inner stacks.
    const bool wide = c.code64() || (as == As::system && c.long_mode());
    return translate(c, wide ? va + first : (va + first) & 0xffffffff, kind, user, p.at[1]);
}

/// False: #AC. A non-canonical address passes: its translation raises #GP. x87 operands of 80 bits need an alignment of
/// 8 bytes. Media operands of 16 bytes are checked only if MXCSR.MM is set, which makes their alignment a matter of
/// this check.
bool aligned(Core &c, Addr va, unsigned size, As as) {
    if (__builtin_expect(!c.check_alignment, 1) || as == As::system)
        return true;
    constexpr std::uint32_t misaligned_mode = 1 << 17;
    const unsigned want = size == 2 || size == 4 || size == 8         ? size
                          : size == 10                                ? 8
                          : size == 16 && (c.mxcsr & misaligned_mode) ? 16
                                                                      : 1;
    return !(va & (want - 1)) || (c.long_mode() && !canonical(va)) || c.raise(exc_ac, 0);
}

/// After an access without a fault.
void watch(Core &c, Addr va, unsigned size, bool write, As as) {
    if (__builtin_expect(c.watched & Core::kWatchData, 0) && as == As::current)
        c.watch_data(va, size, write);
}

/// What an access has to pass before it happens: alignment, translation, breakpoints. False: fault.
template <Kind kKind> bool check(Core &c, Addr va, unsigned size, As as, Pieces &p) {
    if (!aligned(c, va, size, as) || !translate_all(c, va, size, kKind, as, p))
        return false;
    watch(c, va, size, kKind == Kind::write, as);
    return true;
}

/// The largest naturally aligned access at `a` within n bytes.
unsigned chunk(Addr a, unsigned n) {
    unsigned s = 8;
    while (s > n || (a & (s - 1)))
        s >>= 1;
    return s;
}

std::uint64_t device_read(Core &c, PhysAddr at, unsigned size) {
    const DeviceAccess access(c);
    return c.platform.mmio_read(c, at, size);
}

void device_write(Core &c, PhysAddr at, std::uint64_t v, unsigned size) {
    const DeviceAccess access(c);
    c.platform.mmio_write(c, at, v, size);
}

template <class DataPort> void read_piece(Core &c, DataPort port, PhysAddr at, unsigned size, std::uint8_t *to) {
    if (const std::byte *host = c.phys.host(at)) {
        port.load(at, host, to, size);
        return;
    }
    if (size == 1 || size == 2 || size == 4 || size == 8) {
        const std::uint64_t v = device_read(c, at, size);
        std::memcpy(to, &v, size);
        return;
    }
    while (size) {
        const unsigned n = chunk(at.value, size);
        const std::uint64_t v = device_read(c, at, n);
        std::memcpy(to, &v, n);
        at = at + n;
        to += n;
        size -= n;
    }
}

template <class DataPort>
void write_piece(Core &c, DataPort port, PhysAddr at, unsigned size, const std::uint8_t *from) {
    if (std::byte *host = c.phys.host(at)) {
        port.store(at, host, from, size);
        tell_written(c, at, size);
        return;
    }
    std::uint64_t v = 0;
    if (size == 1 || size == 2 || size == 4 || size == 8) {
        std::memcpy(&v, from, size);
        device_write(c, at, v, size);
        return;
    }
    while (size) {
        const unsigned n = chunk(at.value, size);
        v = 0;
        std::memcpy(&v, from, n);
        device_write(c, at, v, n);
        at = at + n;
        from += n;
        size -= n;
    }
}

template <class DataPort> void read_pieces(Core &c, DataPort port, Addr va, const Pieces &p, std::uint8_t *to) {
    port.at_linear(va);
    read_piece(c, port, p.at[0], p.size[0], to);
    if (p.count == 2) {
        port.at_linear(va + p.size[0]);
        read_piece(c, port, p.at[1], p.size[1], to + p.size[0]);
    }
}

template <class DataPort>
void write_pieces(Core &c, DataPort port, Addr va, const Pieces &p, const std::uint8_t *from) {
    port.at_linear(va);
    write_piece(c, port, p.at[0], p.size[0], from);
    if (p.count == 2) {
        port.at_linear(va + p.size[0]);
        write_piece(c, port, p.at[1], p.size[1], from + p.size[0]);
    }
}

} // namespace

DeviceAccess::DeviceAccess(Core &c) : c_(c), before_(c.extra_cycles) {
    with_data_port(c, [](auto port) { port.begin_device_access(); });
}

DeviceAccess::~DeviceAccess() {
    with_data_port(c_, [this](auto port) { port.end_device_access(c_.extra_cycles - before_); });
}

void serialize(Core &c) {
    with_data_port(c, [](auto port) { port.fence(); });
}

void store_fence(Core &c) {
    with_data_port(c, [](auto port) { port.store_fence(); });
}

void tell_written(Core &c, PhysAddr at, unsigned size) {
    if (__builtin_expect(!c.blocks->guarded(c, at, size), 1))
        return;
    with_data_port(c, [&](auto port) { port.wrote_code(at, size); });
}

// Not inlined, so that the short paths below save no registers for these.
[[gnu::noinline]] bool load_slow(Core &c, Addr va, void *to, unsigned size, As as) {
    return with_data_port(c, [&](auto port) {
        if (port.load_translated(va, to, size, is_user(c, as)))
            return true;
        Pieces p;
        if (!check<Kind::read>(c, va, size, as, p))
            return false;
        read_pieces(c, port, va, p, static_cast<std::uint8_t *>(to));
        return true;
    });
}

[[gnu::noinline]] bool store_slow(Core &c, Addr va, const void *from, unsigned size, As as) {
    return with_data_port(c, [&](auto port) {
        if (port.store_translated(va, from, size, is_user(c, as)))
            return true;
        Pieces p;
        if (!check<Kind::write>(c, va, size, as, p))
            return false;
        write_pieces(c, port, va, p, static_cast<const std::uint8_t *>(from));
        return true;
    });
}

bool may_store(Core &c, Addr va, unsigned size) {
    Pieces p;
    return check<Kind::write>(c, va, size, As::current, p);
}

namespace {

/// The value of Direct::read or Direct::write in detailed mode that matches `va`. An address that is not naturally
/// aligned matches none.
template <unsigned kBytes> constexpr Addr page_of_aligned(Addr va) {
    return (va & ~Addr{0xfff - (kBytes - 1)}) | Tlb::Direct::kTimed;
}
constexpr Addr page_of(Addr va) { return (va & ~Addr{0xfff}) | Tlb::Direct::kTimed; }

/// Whether the page of `va` is found in the first-level TLB without a search. If not, nothing has happened.
bool held(Core &c, Addr va, Tlb::Direct &e) {
    L1Tlb &l1 = c.timed->l1_tlb();
    if (!l1.holds(va >> c.tlb->at(va).shift()))
        return false;
    e.held = l1.generation();
    return true;
}

// Functions of their own, so that the short paths save no registers for them.
template <unsigned kBytes> [[gnu::noinline]] LoadedWord<kBytes> load_general(Core &c, Addr va) {
    // Mostly, only the translation is missing.
    if (c.timed && c.tlb != &Core::nothing && !c.timed->looks_ahead() && line_offset(va) <= kLineBytes - kBytes) {
        PhysAddr at;
        if (!translate(c, va, Kind::read, c.cpl == 3, at))
            return {};
        if (const Addr dram = c.phys.dram_address(at); dram != PhysMap::kNone)
            return c.timed->load_sized<kBytes>(dram, va);
    }
    std::uint8_t bytes[kBytes];
    if (!load_slow(c, va, bytes, kBytes))
        return {};
    return {true, Word<kBytes>::of(bytes)};
}
template <unsigned kBytes> [[gnu::noinline]] LoadedWord<kBytes> load_unheld(Core &c, Addr va, Tlb::Direct &e) {
    if (e.read != page_of(va) || line_offset(va) > kLineBytes - kBytes || !held(c, va, e))
        return load_general<kBytes>(c, va);
    return c.timed->load_sized<kBytes>(va + e.distance, va);
}

template <unsigned kBytes> [[gnu::noinline]] bool store_general(Core &c, Addr va, Word<kBytes> word) {
    std::uint8_t bytes[kBytes];
    word.put(bytes);
    return store_slow(c, va, bytes, kBytes);
}
template <unsigned kBytes> [[gnu::noinline]] bool store_unheld(Core &c, Addr va, Word<kBytes> word, Tlb::Direct &e) {
    if (e.write != page_of(va) || line_offset(va) > kLineBytes - kBytes || !c.timed->stores_soon() || !held(c, va, e))
        return store_general<kBytes>(c, va, word);
    return c.timed->store_sized<kBytes>(va + e.distance, va, word);
}

} // namespace

// These functions make only tail calls, so they save no registers.
template <unsigned kBytes> LoadedWord<kBytes> load_sized(Core &c, Addr va, Tlb::Direct &e) {
    if (e.read != page_of_aligned<kBytes>(va) || e.held != c.timed->l1_tlb().generation())
        return load_unheld<kBytes>(c, va, e);
    return c.timed->load_sized<kBytes>(va + e.distance, va);
}

template <unsigned kBytes> bool store_sized(Core &c, Addr va, Word<kBytes> word, Tlb::Direct &e) {
    if (e.write != page_of_aligned<kBytes>(va) || e.held != c.timed->l1_tlb().generation() ||
        !c.timed->stores_at_once())
        return store_unheld<kBytes>(c, va, word, e);
    return c.timed->store_sized<kBytes, true>(va + e.distance, va, word);
}

template <unsigned kBytes> std::uint64_t store_several(Core &c, Addr va, const void *from, std::uint64_t n) {
    Tlb::Direct &e = c.tlb->direct_at(va);
    if (e.write != page_of(va) || !c.timed->stores_soon() || !held(c, va, e))
        return 0;
    return c.timed->store_several<kBytes>(va + e.distance, va, from, n);
}

template LoadedWord<1> load_sized(Core &, Addr, Tlb::Direct &);
template LoadedWord<2> load_sized(Core &, Addr, Tlb::Direct &);
template LoadedWord<4> load_sized(Core &, Addr, Tlb::Direct &);
template LoadedWord<8> load_sized(Core &, Addr, Tlb::Direct &);
template LoadedWord<16> load_sized(Core &, Addr, Tlb::Direct &);
template bool store_sized(Core &, Addr, Word<1>, Tlb::Direct &);
template bool store_sized(Core &, Addr, Word<2>, Tlb::Direct &);
template bool store_sized(Core &, Addr, Word<4>, Tlb::Direct &);
template bool store_sized(Core &, Addr, Word<8>, Tlb::Direct &);
template bool store_sized(Core &, Addr, Word<16>, Tlb::Direct &);
template std::uint64_t store_several<1>(Core &, Addr, const void *, std::uint64_t);
template std::uint64_t store_several<2>(Core &, Addr, const void *, std::uint64_t);
template std::uint64_t store_several<4>(Core &, Addr, const void *, std::uint64_t);
template std::uint64_t store_several<8>(Core &, Addr, const void *, std::uint64_t);

template <unsigned kBytes> bool modify_sized(Core &c, Addr va, void (*f)(void *, void *), void *context) {
    Tlb::Direct &e = c.tlb->direct_at(va);
    const Addr page = page_of_aligned<kBytes>(va);
    if (e.write != page || (e.held != c.timed->l1_tlb().generation() && !held(c, va, e)))
        return modify_slow(c, va, kBytes, f, context, false);
    TimedCore &timed = *c.timed;
    const Addr dram = va + e.distance;
    timed.disturb();
    std::uint8_t bytes[kBytes];
    timed.load_sized<kBytes>(dram, va).word.put(bytes);
    f(context, bytes);
    const auto word = Word<kBytes>::of(bytes);
    // During a miss another core may have decoded code there.
    if (__builtin_expect(e.write == page && timed.stores_at_once(), 1))
        return timed.store_sized<kBytes, true>(dram, va, word);
    const PhysAddr at = c.phys.phys_address(dram);
    timed.store(at, bytes, kBytes);
    tell_written(c, at, kBytes);
    return true;
}

template bool modify_sized<1>(Core &, Addr, void (*)(void *, void *), void *);
template bool modify_sized<2>(Core &, Addr, void (*)(void *, void *), void *);
template bool modify_sized<4>(Core &, Addr, void (*)(void *, void *), void *);
template bool modify_sized<8>(Core &, Addr, void (*)(void *, void *), void *);

bool modify_slow(Core &c, Addr va, unsigned size, void (*f)(void *, void *), void *context, bool locked) {
    Tlb::Direct &e = c.tlb->direct_at(va);
    if (e.write == page_of(va) && line_offset(va) + size <= kLineBytes && held(c, va, e)) {
        const PhysAddr at = c.phys.phys_address(va + e.distance);
        c.timed->at_linear(va);
        c.timed->modify(at, size, f, context, locked);
        tell_written(c, at, size);
        return true;
    }
    return with_data_port(c, [&](auto port) {
        if (port.modify_ahead(va, size, f, context, c.cpl == 3))
            return true;
        Pieces p;
        if (!check<Kind::write>(c, va, size, As::current, p))
            return false;
        if (std::byte *host = c.phys.host(p.at[0]); host && p.count == 1) {
            port.at_linear(va);
            port.modify(p.at[0], host, size, f, context, locked);
            tell_written(c, p.at[0], size);
            return true;
        }
        if (p.count == 2 && locked && c.phys.host(p.at[0]) && c.phys.host(p.at[1])) {
            port.at_linear(va);
            port.modify_across(p.at, p.size, f, context);
            tell_written(c, p.at[0], p.size[0]);
            tell_written(c, p.at[1], p.size[1]);
            return true;
        }
        // On a device register a locked access is two accesses.
        alignas(16) std::uint8_t bytes[64];
        port.at_linear(va);
        for (unsigned i = 0, done = 0; i < p.count; done += p.size[i++])
            read_piece(c, port, p.at[i], p.size[i], bytes + done);
        f(context, bytes);
        write_pieces(c, port, va, p, bytes);
        return true;
    });
}

} // namespace moscope::x86
