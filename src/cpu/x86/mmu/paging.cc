// SPDX-License-Identifier: BSD-3-Clause
#include "cpu/x86/mmu/paging.hh"

#include <cstring>

#include "cpu/x86/decode/block.hh"
#include "cpu/x86/mmu/data_port.hh"
#include "cpu/x86/mmu/memory.hh"

namespace moscope::x86 {

namespace {

constexpr Addr kPage = 0x1000;
constexpr std::uint64_t kPresent = 1, kWrite = 2, kUser = 4, kAccessed = 32, kDirty = 64, kLarge = 128, kGlobal = 256,
                        kNoExecute = std::uint64_t{1} << 63;
constexpr std::uint64_t kAddress = 0x000ffffffffff000; ///< the architecture's 52 bits
constexpr std::uint64_t kBeyond = 0x000f000000000000;  ///< above the family's 48 bits: reserved

/// Error code of a page fault.
constexpr std::uint32_t err_present = 1, err_write = 2, err_user = 4, err_reserved = 8, err_fetch = 16;

struct Leaf {
    std::uint64_t phys = 0; ///< of the 4-KiB page
    bool write = true, user = true, execute = true, global = false, dirty = false;
    unsigned shift = 12;
};

/// The update of an entry that has been read before. It is made only if all else of the entry is still as it was.
template <class T> struct Update {
    T before, bits;
    bool made = false;

    static void apply(void *self, void *entry) {
        auto &u = *static_cast<Update *>(self);
        T e;
        std::memcpy(&e, entry, sizeof e);
        u.made = ((e ^ u.before) & ~static_cast<T>(kAccessed | kDirty)) == 0;
        if (!u.made)
            return;
        e |= u.bits;
        std::memcpy(entry, &e, sizeof e);
    }
};

struct Walk {
    Core &c;
    Addr va;
    Kind kind;
    bool user;
    bool nx; ///< the no-execute bit counts
    bool side_effects = true;

    bool fault(std::uint32_t present_bits) const {
        c.fault = {exc_pf, true, 0, va};
        c.fault.error = present_bits | (kind == Kind::write ? err_write : 0) | (user ? err_user : 0) |
                        (kind == Kind::fetch && nx ? err_fetch : 0);
        return false;
    }

    template <class T> T read(Addr at) const {
        T x = 0;
        if (const std::byte *p = c.phys.host(PhysAddr(at))) {
            if (side_effects)
                with_data_port(c, [&](auto port) { port.walk_load(PhysAddr(at), p, &x, sizeof x); });
            else
                std::memcpy(&x, p, sizeof x);
        } else
            std::memset(&x, 0xff, sizeof x);
        return x;
    }
    /// Sets bits of an entry, as a locked update. False: another core has changed the entry since it was read.
    template <class T> bool set_bits(Addr at, T before, T bits) const {
        std::byte *const p = c.phys.host(PhysAddr(at));
        if (!p)
            return true;
        Update<T> update{before, bits};
        with_data_port(c,
                       [&](auto port) { port.walk_modify(PhysAddr(at), p, sizeof bits, Update<T>::apply, &update); });
        if (update.made)
            tell_written(c, PhysAddr(at), sizeof bits);
        return update.made;
    }

    /// Entries of a table format: T wide, `levels` deep, each level `bits` of the address.
    template <class T> bool run(const Addr root, int levels, unsigned bits, unsigned large_levels, Leaf &leaf) {
        unsigned shift = 12 + bits * static_cast<unsigned>(levels - 1);
        Addr table = root;
        Addr entry_at[5];
        T entry[5];
        int depth = 0;
        for (int level = levels; level >= 1; --level, shift -= bits, ++depth) {
            const Addr at = table + ((va >> shift) & ((Addr{1} << bits) - 1)) * sizeof(T);
            const T e = read<T>(at);
            entry_at[depth] = at;
            entry[depth] = e;
            if (!(e & kPresent))
                return fault(0);
            // PAE's top-level entries have no rights of their own.
            const bool pdpte = sizeof(T) == 8 && levels == 3 && level == 3;
            const bool is_leaf = level == 1 || ((e & kLarge) && (large_levels >> level & 1));
            if (sizeof(T) == 8) {
                if ((e & kBeyond) || (!nx && (std::uint64_t{e} & kNoExecute)))
                    return fault(err_present | err_reserved);
                if (!is_leaf && (e & kLarge) && level >= 3 && !pdpte)
                    return fault(err_present | err_reserved);
            }
            if (!pdpte) {
                leaf.write &= (e & kWrite) != 0;
                leaf.user &= (e & kUser) != 0;
                if (nx && sizeof(T) == 8)
                    leaf.execute &= !(std::uint64_t{e} & kNoExecute);
            }
            if (!is_leaf) {
                table = sizeof(T) == 8 ? e & kAddress : e & 0xfffff000;
                continue;
            }
            Addr base;
            if (sizeof(T) == 4 && level == 2) // 4-MiB page: bits 20:13 are address bits 39:32
                base = (e & 0xffc00000) | static_cast<Addr>(e & 0x1fe000) << 19;
            else {
                base = (sizeof(T) == 8 ? e & kAddress : e & 0xfffff000) & ~((Addr{1} << shift) - 1);
                if (level > 1 && (e & (((Addr{1} << shift) - 1) & ~Addr{0x1fff})) && sizeof(T) == 8)
                    return fault(err_present | err_reserved);
            }
            leaf.phys = (base | (va & ((Addr{1} << shift) - 1))) & ~(kPage - 1);
            leaf.shift = shift;
            leaf.global = (e & kGlobal) && (c.cr4 & cr4::pge);
            leaf.dirty = e & kDirty;
            break;
        }
        // Rights.
        const bool ignore_write = !user && !(c.cr0 & cr0::wp);
        if ((user && !leaf.user) || (kind == Kind::write && !leaf.write && !ignore_write) ||
            (kind == Kind::fetch && !leaf.execute))
            return fault(err_present);
        leaf.write |= ignore_write;
        if (!side_effects)
            return true;
        // Accessed and dirty bits, each as a locked update of its entry.
        for (int d = 0; d <= depth; ++d) {
            const bool pdpte = sizeof(T) == 8 && levels == 3 && d == 0;
            if (pdpte)
                continue;
            T want = static_cast<T>(kAccessed);
            if (d == depth && kind == Kind::write) {
                want |= static_cast<T>(kDirty);
                leaf.dirty = true;
            }
            if ((entry[d] & want) != want && !set_bits<T>(entry_at[d], entry[d], want)) {
                leaf = {};
                return run<T>(root, levels, bits, large_levels, leaf); // as the tables are now
            }
        }
        return true;
    }

    bool tables(Leaf &leaf) {
        if (c.long_mode())
            return run<std::uint64_t>(c.cr3 & kAddress, 4, 9, 1u << 2 | 1u << 3, leaf);
        if (c.cr4 & cr4::pae)
            return run<std::uint64_t>(c.cr3 & 0xffffffe0, 3, 9, 1u << 2, leaf);
        return run<std::uint32_t>(c.cr3 & 0xfffff000, 2, 10, (c.cr4 & cr4::pse) ? 1u << 2 : 0, leaf);
    }
};

bool nx_counts(const Core &c) { return (c.efer & efer::nxe) && (c.cr4 & cr4::pae); }

Addr bits_of(const Leaf &leaf) {
    using E = Tlb::Entry;
    return (leaf.global ? E::kGlobal : 0) | (leaf.write ? E::kWritable : 0) | (leaf.execute ? E::kExecutable : 0) |
           (leaf.dirty ? E::kDirty : 0) | E::shifted(leaf.shift);
}

/// Where an access to a physical page goes: a core's local APIC is at the base that it has set, over whatever else is there
/// (AMD 24593, section 16.3.1).
Addr reached(const Core &c, Addr page) {
    using Apic = dev::InterruptSource;
    constexpr Addr kNothing = Apic::kRegisters - kPage; // no device is there
    if (!c.interrupts)
        return page;
    const std::uint64_t register_value = c.interrupts->apic_base();
    const Addr base = register_value & Apic::kBaseAddress;
    if (__builtin_expect(base == Apic::kRegisters, 1) || !(register_value & Apic::kBaseEnable))
        return page;
    return page == base ? Apic::kRegisters : page == Apic::kRegisters ? kNothing : page;
}

void remember(Core &c, bool user, Addr va, const Leaf &leaf) {
    c.tlbs[user].at(va) = {va & ~(kPage - 1), leaf.phys | bits_of(leaf)};
    let_direct(c, user, va);
}

/// A large page that is remembered, if the access is one that needs no walk.
bool large_page(Core &c, Addr va, Kind kind, bool user, Leaf &leaf) {
    using E = Tlb::Entry;
    const Tlb::Large &l = c.tlbs[user].large_at(va);
    const Addr need = kind == Kind::write ? E::kWritable | E::kDirty : kind == Kind::fetch ? E::kExecutable : 0;
    if (l.number != va >> 21 || (l.phys & need) != need)
        return false;
    leaf.phys = (l.phys & ~Addr{0x1fffff}) | (va & 0x1ff000);
    leaf.write = l.phys & E::kWritable;
    leaf.execute = l.phys & E::kExecutable;
    leaf.global = l.phys & E::kGlobal;
    leaf.dirty = l.phys & E::kDirty;
    leaf.shift = l.shift();
    return true;
}

} // namespace

void Core::flush_tlb(bool global_too) {
    for (Tlb &t : tlbs)
        global_too ? t.flush_all() : t.flush_local();
    forget_blocks(global_too);
    if (timed)
        global_too ? timed->l1_tlb().clear() : timed->l1_tlb().flush_local();
}

void Core::flush_page(Addr va) {
    for (Tlb &t : tlbs)
        t.flush_page(va);
    forget_blocks(va >> 63);
    if (timed)
        timed->l1_tlb().flush_page(va);
}

void let_direct(Core &c, bool user, Addr va) {
    const Tlb::Entry &e = c.tlbs[user].at(va);
    Tlb::Direct &d = c.tlbs[user].direct_at(va);
    d.read = d.write = Tlb::kNoPage;
    const PhysAddr phys = e.at(0);
    if (std::byte *host = c.phys.host(phys)) {
        d.distance = (c.direct ? reinterpret_cast<std::uintptr_t>(host) : c.phys.dram_address(phys)) - e.page;
        d.shift = static_cast<std::uint8_t>(e.shift());
        d.read = e.page | (c.direct ? 0 : Tlb::Direct::kTimed);
        if ((e.phys & Tlb::Entry::kWritable) && (e.phys & Tlb::Entry::kDirty) && !c.blocks->code_page(phys))
            d.write = d.read;
    }
}

bool translate(Core &c, Addr va, Kind kind, bool user, PhysAddr &out) {
    using E = Tlb::Entry;
    const Addr page = va & ~(kPage - 1);
    const E &e = c.tlbs[user].at(va);
    if (e.page == page) {
        const Addr need = kind == Kind::write ? E::kWritable | E::kDirty : kind == Kind::fetch ? E::kExecutable : 0;
        if ((e.phys & need) == need) {
            out = e.at(va);
            if (kind != Kind::fetch)
                with_data_port(c, [&](auto port) { port.l1_tlb(va >> e.shift(), e.phys & E::kGlobal); });
            if (kind == Kind::write)
                if (Tlb::Direct &d = c.tlbs[user].direct_at(va);
                    d.write == Tlb::kNoPage && (d.read & ~Tlb::Direct::kTimed) == page && !c.blocks->code_page(out))
                    d.write = d.read;
            return true;
        }
    }
    Leaf leaf;
    if (!c.paging()) {
        leaf.phys = page;
        leaf.dirty = true;
    } else if (large_page(c, va, kind, user, leaf)) {
        // no walk
    } else {
        if (c.long_mode() && !canonical(va)) {
            c.raise(exc_gp, 0);
            c.fault.not_canonical = kind != Kind::fetch;
            return false;
        }
        Walk walk{c, va, kind, user, nx_counts(c)};
        if (!walk.tables(leaf))
            return false;
        if (leaf.shift >= 21)
            c.tlbs[user].large_at(va) = {va >> 21, (leaf.phys & ~Addr{0x1fffff}) | bits_of(leaf)};
    }
    leaf.phys = reached(c, leaf.phys);
    remember(c, user, va, leaf);
    if (kind != Kind::fetch)
        with_data_port(c, [&](auto port) { port.l1_tlb(va >> leaf.shift, leaf.global); });
    out = PhysAddr(leaf.phys | (va & (kPage - 1)));
    return true;
}

bool peek_translation(const Core &c, Addr va, PhysAddr &out) {
    if (!c.paging()) {
        out = PhysAddr(reached(c, va & ~(kPage - 1)) | (va & (kPage - 1)));
        return true;
    }
    if (c.long_mode() && !canonical(va))
        return false;
    Core &core = const_cast<Core &>(c); // the walk writes nothing but Core::fault, which is put back
    const Fault before = c.fault;
    Leaf leaf;
    Walk walk{core, va, Kind::read, false, nx_counts(c), false};
    const bool found = walk.tables(leaf);
    core.fault = before;
    out = PhysAddr(reached(c, leaf.phys) | (va & (kPage - 1)));
    return found;
}

} // namespace moscope::x86
