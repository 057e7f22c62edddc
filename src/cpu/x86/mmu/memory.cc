// SPDX-License-Identifier: BSD-3-Clause
#include "cpu/x86/mmu/memory.hh"

#include <algorithm>

#include "cpu/x86/decode/block.hh"
#include "cpu/x86/mmu/paging.hh"
#include "cpu/x86/timed/timed_core.hh"

namespace moscope::x86 {

namespace {

/// An access as at most two pieces, one per page.
struct Pieces {
    PhysAddr at[2];
    unsigned size[2] = {0, 0};
    unsigned count = 0;
};

bool translate_all(Core &c, Addr va, unsigned size, Kind kind, bool user, Pieces &p) {
    const unsigned first = std::min<unsigned>(size, static_cast<unsigned>(0x1000 - (va & 0xfff)));
    p.size[0] = first;
    p.size[1] = size - first;
    p.count = first == size ? 1 : 2;
    if (p.count == 2 && c.long_mode() && !canonical(va + first)) { // before any page is looked for
        c.raise(exc_gp, 0);
        c.fault.not_canonical = true;
        return false;
    }
    if (!translate(c, va, kind, user, p.at[0]))
        return false;
    // Outside of 64-bit mode linear addresses have 32 bits.
    return p.count == 1 || translate(c, c.code64() ? va + first : (va + first) & 0xffffffff, kind, user, p.at[1]);
}

bool is_user(const Core &c, As as) { return as == As::current && c.cpl == 3; }

/// False: #AC, or a pending #GP is left to translation. x87 operands of 80 bits want eight bytes; media operands that may
/// lie anywhere are looked at only if MXCSR.MM makes alignment a matter of this check.
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

/// Most accesses of detailed mode: DRAM, in one line, of a page that the TLB knows to allow it. `d` is where.
bool known(Core &c, Addr va, unsigned size, As as, Addr need, Addr &d) {
    if (line_offset(va) + size > kLineBytes || c.check_alignment || (c.watched & Core::kWatchData))
        return false;
    const Tlb::Entry &e = c.tlbs[is_user(c, as)].at(va);
    if (e.page != (va & ~Addr{0xfff}) || (e.phys & need) != need)
        return false;
    d = c.phys.dram_address(e.at(va));
    if (d == PhysMap::kNone)
        return false;
    c.timed->l1_tlb(va >> e.shift());
    return true;
}

/// After an access that went well.
void watch(Core &c, Addr va, unsigned size, bool write, As as) {
    if (__builtin_expect(c.watched & Core::kWatchData, 0) && as == As::current)
        c.watch_data(va, size, write);
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

void read_piece(Core &c, PhysAddr at, unsigned size, std::uint8_t *to) {
    if (const std::byte *host = c.phys.host(at)) {
        if (c.timed)
            c.timed->load(at, to, size);
        else
            std::memcpy(to, host, size);
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

void write_piece(Core &c, PhysAddr at, unsigned size, const std::uint8_t *from) {
    if (std::byte *host = c.phys.host(at)) {
        if (c.timed)
            c.timed->store(at, from, size);
        else
            std::memcpy(host, from, size);
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

} // namespace

DeviceAccess::DeviceAccess(Core &c) : c_(c), before_(c.extra_cycles) {
    if (c.timed)
        c.timed->begin_device_access();
}

DeviceAccess::~DeviceAccess() {
    if (c_.timed)
        c_.timed->end_device_access(c_.extra_cycles - before_);
}

void serialize(Core &c) {
    if (c.timed)
        c.timed->fence();
}

void tell_written(Core &c, PhysAddr at, unsigned size) {
    if (__builtin_expect(!c.blocks->guarded(c, at, size), 1))
        return;
    if (c.timed)
        c.timed->wrote_code(at, size);
    else
        c.blocks->written(at, size);
}

bool load_slow(Core &c, Addr va, void *to, unsigned size, As as) {
    if (Addr d; c.timed && known(c, va, size, as, 0, d)) {
        c.timed->at_linear(va);
        c.timed->load_line(d, to, size);
        return true;
    }
    Pieces p;
    if (!aligned(c, va, size, as) || !translate_all(c, va, size, Kind::read, is_user(c, as), p))
        return false;
    watch(c, va, size, false, as);
    if (c.timed)
        c.timed->at_linear(va);
    auto *bytes = static_cast<std::uint8_t *>(to);
    read_piece(c, p.at[0], p.size[0], bytes);
    if (p.count == 2) {
        if (c.timed)
            c.timed->at_linear(va + p.size[0]);
        read_piece(c, p.at[1], p.size[1], bytes + p.size[0]);
    }
    return true;
}

bool store_slow(Core &c, Addr va, const void *from, unsigned size, As as) {
    if (Addr d; c.timed && known(c, va, size, as, Tlb::Entry::kWritable | Tlb::Entry::kDirty, d)) {
        c.timed->at_linear(va);
        c.timed->store_line(d, from, size);
        if (__builtin_expect(c.blocks->guarded_dram(c, d, size), 0))
            c.timed->wrote_code(c.phys.phys_address(d), size);
        return true;
    }
    Pieces p;
    if (!aligned(c, va, size, as) || !translate_all(c, va, size, Kind::write, is_user(c, as), p))
        return false;
    watch(c, va, size, true, as);
    if (c.timed)
        c.timed->at_linear(va);
    const auto *bytes = static_cast<const std::uint8_t *>(from);
    write_piece(c, p.at[0], p.size[0], bytes);
    if (p.count == 2) {
        if (c.timed)
            c.timed->at_linear(va + p.size[0]);
        write_piece(c, p.at[1], p.size[1], bytes + p.size[0]);
    }
    return true;
}

bool modify_slow(Core &c, Addr va, unsigned size, void (*f)(void *, void *), void *context, bool locked) {
    Pieces p;
    if (!aligned(c, va, size, As::current) || !translate_all(c, va, size, Kind::write, is_user(c, As::current), p))
        return false;
    watch(c, va, size, true, As::current);
    if (c.timed)
        c.timed->at_linear(va);
    if (c.timed && p.count == 1 && c.phys.host(p.at[0])) {
        c.timed->modify(p.at[0], size, f, context, locked);
        tell_written(c, p.at[0], size);
        return true;
    }
    // Across pages (or on a device register) a locked access is two, which no program relies on.
    alignas(16) std::uint8_t bytes[64];
    read_piece(c, p.at[0], p.size[0], bytes);
    if (p.count == 2)
        read_piece(c, p.at[1], p.size[1], bytes + p.size[0]);
    f(context, bytes);
    write_piece(c, p.at[0], p.size[0], bytes);
    if (p.count == 2) {
        if (c.timed)
            c.timed->at_linear(va + p.size[0]);
        write_piece(c, p.at[1], p.size[1], bytes + p.size[0]);
    }
    return true;
}

} // namespace moscope::x86
