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
constexpr std::uint64_t kAddress = 0x000ffffffffff000;   ///< the architecture's 52 bits
constexpr std::uint64_t kBeyond = 0x000f000000000000;    ///< above the family's 48 bits: reserved
constexpr std::uint64_t kAvailable = 0x7ff0000000000000; ///< to software in long mode, reserved in PAE's entries

/// Error code of a page fault.
constexpr std::uint32_t err_present = 1, err_write = 2, err_user = 4, err_reserved = 8, err_fetch = 16;

/// What a translation says, in the form of Tlb::Entry::phys.
struct Leaf {
    using E = Tlb::Entry;
    Addr phys = 0;                                                          ///< of the 4-KiB page
    Addr bits = E::kWritable | E::kExecutable | E::kDirty | E::shifted(12); ///< as without paging
    unsigned shift() const { return E::shift_of(bits); }
};

/// The update of an entry that has been read before. It is made only if the rest of the entry has not changed.
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

/// A format of page tables: entries of one type, `kLevels` deep; each level translates `kBits` bits of the address. Bit
/// n of kLarge: level n may have large pages.
struct LongMode {
    using Entry = std::uint64_t;
    static constexpr int kLevels = 4;
    static constexpr unsigned kBits = 9, kLarge = 1u << 2 | 1u << 3;
};
struct Pae {
    using Entry = std::uint64_t;
    static constexpr int kLevels = 3;
    static constexpr unsigned kBits = 9, kLarge = 1u << 2;
};
struct Legacy {
    using Entry = std::uint32_t;
    static constexpr int kLevels = 2;
    static constexpr unsigned kBits = 10, kLarge = 1u << 2;
};

struct Walk {
    const Core &c;
    Core *changed; ///< the same core; null: the walk has no side effects
    Addr cr3;
    Addr va;
    Kind kind;
    bool user;
    bool nx; ///< the no-execute bit counts

    bool fault(std::uint32_t present_bits) const {
        if (!changed)
            return false;
        changed->fault = {exc_pf, true, 0, va};
        changed->fault.error = present_bits | (kind == Kind::write ? err_write : 0) | (user ? err_user : 0) |
                               (kind == Kind::fetch && nx ? err_fetch : 0);
        return false;
    }

    template <class T> T read(Addr at) const {
        const Addr dram = c.phys.dram_address(PhysAddr(at));
        if (dram == PhysMap::kNone)
            return static_cast<T>(~T{0});
        if (changed)
            return with_data_port(*changed, [&](auto port) { return port.template walk_load<T>(dram); });
        T x;
        std::memcpy(&x, c.phys.memory + dram, sizeof x);
        return x;
    }
    /// Sets bits of an entry, as a locked update. False: another core has changed the entry since it was read.
    template <class T> bool set_bits(Addr at, T before, T bits) const {
        std::byte *const p = c.phys.host(PhysAddr(at));
        if (!p)
            return true;
        Update<T> update{before, bits};
        with_data_port(*changed,
                       [&](auto port) { port.walk_modify(PhysAddr(at), p, sizeof bits, Update<T>::apply, &update); });
        if (update.made)
            tell_written(*changed, PhysAddr(at), sizeof bits);
        return update.made;
    }

    /// Whether one of the first `n` entries has the global bit although it is reserved there: in the upper two levels of
    /// long mode, unless the entry is that of a page.
    template <class F> static bool global_tables(const typename F::Entry *entry, int n) {
        return F::kLevels == 4 && ((n > 0 && (entry[0] & kGlobal)) || (n > 1 && (entry[1] & kGlobal)));
    }

    /// `large`: the levels that may have large pages, by bit.
    template <class F> bool run(const Addr root, Leaf &leaf, const unsigned large = F::kLarge) {
        using T = typename F::Entry;
        constexpr T kFrame = static_cast<T>(sizeof(T) == 8 ? kAddress : 0xfffff000);
        const T reserved =
            static_cast<T>(sizeof(T) == 4 ? 0 : kBeyond | (F::kLevels == 3 ? kAvailable : 0) | (nx ? 0 : kNoExecute));
        unsigned shift = 12 + F::kBits * static_cast<unsigned>(F::kLevels - 1);
        Addr table = root;
        Addr entry_at[F::kLevels];
        T entry[F::kLevels];
        T all = static_cast<T>(~T{0}), any = 0; // bits that all entries have, and that any has
        int depth = 0;
        for (int level = F::kLevels;; --level, shift -= F::kBits, ++depth) {
            const Addr at = table + ((va >> shift) & ((Addr{1} << F::kBits) - 1)) * sizeof(T);
            const T e = read<T>(at);
            entry_at[depth] = at;
            entry[depth] = e;
            if (__builtin_expect((e & (kPresent | reserved)) != kPresent, 0))
                return fault(e & kPresent || global_tables<F>(entry, depth) ? err_present | err_reserved : 0);
            // PAE's top-level entries have no rights of their own, and no accessed bit.
            if (F::kLevels != 3 || level != 3) {
                all &= e;
                any |= e;
            }
            if (level > 1 && !((e & kLarge) && (large >> level & 1))) {
                if (F::kLevels == 4 && (e & kLarge))
                    return fault(err_present | err_reserved);
                table = e & kFrame;
                continue;
            }
            const Addr within = (Addr{1} << shift) - 1;
            Addr base = (e & kFrame) & ~within;
            if (sizeof(T) == 4 && level == 2) { // 4-MiB page: bits 20:13 are address bits 39:32, bit 21 is reserved
                base |= static_cast<Addr>(e & 0x1fe000) << 19;
                if (e & 1 << 21)
                    return fault(err_present | err_reserved);
            } else if (level > 1 && (e & within & ~Addr{0x1fff}))
                return fault(err_present | err_reserved);
            leaf.phys = (base | (va & within)) & ~(kPage - 1);
            break;
        }
        using E = Tlb::Entry;
        const T last = entry[depth];
        Addr global = 0;
        if (any & kGlobal) { // one test for pages that are not global
            if (global_tables<F>(entry, depth))
                return fault(err_present | err_reserved);
            global = (last & kGlobal) && (c.cr4 & cr4::pge) ? E::kGlobal : 0;
        }
        // Rights.
        const bool write = (all & kWrite) || (!user && !(c.cr0 & cr0::wp));
        const bool execute = !(nx && sizeof(T) == 8 && (std::uint64_t{any} & kNoExecute));
        if ((user && !(all & kUser)) || (kind == Kind::write && !write) || (kind == Kind::fetch && !execute))
            return fault(err_present);
        const bool dirties = kind == Kind::write && !(last & kDirty);
        if (changed && (!(all & kAccessed) || dirties) && !update(entry_at, entry, F::kLevels == 3 ? 1 : 0, depth))
            return run<F>(root, leaf, large); // again, with the tables as they are now
        leaf.bits = global | (write ? E::kWritable : 0) | (execute ? E::kExecutable : 0) |
                    ((last & kDirty) || dirties ? E::kDirty : 0) | E::shifted(shift);
        return true;
    }

    /// Sets accessed and dirty bits, each with a locked update of its entry. False: an entry is no longer what was
    /// read.
    template <class T> bool update(const Addr *entry_at, const T *entry, int first, int last) const {
        for (int d = first; d <= last; ++d) {
            const auto want = static_cast<T>(d == last && kind == Kind::write ? kAccessed | kDirty : kAccessed);
            if ((entry[d] & want) != want && !set_bits<T>(entry_at[d], entry[d], want))
                return false;
        }
        return true;
    }

    bool tables(Leaf &leaf) {
        if (c.long_mode())
            return run<LongMode>(cr3 & kAddress, leaf);
        if (c.cr4 & cr4::pae)
            return run<Pae>(cr3 & 0xffffffe0, leaf);
        return run<Legacy>(cr3 & 0xfffff000, leaf, c.cr4 & cr4::pse ? Legacy::kLarge : 0);
    }
};

bool nx_counts(const Core &c) { return (c.efer & efer::nxe) && (c.cr4 & cr4::pae); }

/// The page that an access to a physical page reaches: a core's local APIC is at the base that it has set, and hides
/// what else is there (AMD 24593, section 16.3.1).
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

/// Fills in where the page of `e` may be accessed directly.
inline void let_direct(Core &c, const Tlb::Entry &e, Tlb::Direct &d) {
    d.read = d.write = Tlb::kNoPage;
    d.held = 0;
    const Addr dram = c.phys.dram_address(e.at(0));
    if (dram == PhysMap::kNone)
        return;
    d.distance = (c.direct ? reinterpret_cast<std::uintptr_t>(c.phys.memory) : 0) + dram - e.page;
    d.read = e.page | (c.direct ? 0 : Tlb::Direct::kTimed);
    if ((e.phys & Tlb::Entry::kWritable) && (e.phys & Tlb::Entry::kDirty) && !c.blocks->code_dram(dram))
        d.write = d.read;
}

void remember(Core &c, bool user, Addr va, const Leaf &leaf) {
    Tlb &tlb = c.tlbs[user];
    Tlb::Entry &e = tlb.at(va);
    e = {va & ~(kPage - 1), leaf.phys | leaf.bits};
    let_direct(c, e, tlb.direct_at(va));
}

/// Translates by a remembered large page. False: there is none, or the access needs a walk.
bool large_page(Core &c, Addr va, Kind kind, bool user, Leaf &leaf) {
    using E = Tlb::Entry;
    const Tlb::Large &l = c.tlbs[user].large_at(va);
    const Addr need = kind == Kind::write ? E::kWritable | E::kDirty : kind == Kind::fetch ? E::kExecutable : 0;
    if (l.number != va >> 21 || (l.phys & need) != need)
        return false;
    leaf.phys = (l.phys & ~Addr{0x1fffff}) | (va & 0x1ff000);
    leaf.bits = l.phys & (kPage - 1);
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

void let_direct(Core &c, bool user, Addr va) { let_direct(c, c.tlbs[user].at(va), c.tlbs[user].direct_at(va)); }

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
    } else if (large_page(c, va, kind, user, leaf)) {
        // no walk
    } else {
        if (c.long_mode() && !canonical(va)) {
            c.raise(exc_gp, 0);
            c.fault.not_canonical = kind != Kind::fetch;
            return false;
        }
        Walk walk{c, &c, c.cr3, va, kind, user, nx_counts(c)};
        if (!walk.tables(leaf))
            return false;
        if (leaf.shift() >= 21)
            c.tlbs[user].large_at(va) = {va >> 21, (leaf.phys & ~Addr{0x1fffff}) | leaf.bits};
    }
    leaf.phys = reached(c, leaf.phys);
    remember(c, user, va, leaf);
    if (kind != Kind::fetch)
        with_data_port(c, [&](auto port) { port.l1_tlb(va >> leaf.shift(), leaf.bits & E::kGlobal); });
    out = PhysAddr(leaf.phys | (va & (kPage - 1)));
    return true;
}

bool peek_translation(const Core &c, Addr va, PhysAddr &out) { return peek_translation(c, c.cr3, va, out); }

bool peek_translation(const Core &c, Addr cr3, Addr va, PhysAddr &out) {
    if (!c.paging()) {
        out = PhysAddr(reached(c, va & ~(kPage - 1)) | (va & (kPage - 1)));
        return true;
    }
    if (c.long_mode() && !canonical(va))
        return false;
    Leaf leaf;
    Walk walk{c, nullptr, cr3, va, Kind::read, false, nx_counts(c)};
    const bool found = walk.tables(leaf);
    out = PhysAddr(reached(c, leaf.phys) | (va & (kPage - 1)));
    return found;
}

} // namespace moscope::x86
