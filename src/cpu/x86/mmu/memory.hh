// SPDX-License-Identifier: BSD-3-Clause
// Memory as instructions see it: linear addresses of operands, loads, stores and read-modify-writes. The fast path is a
// look-up in the core's TLB and a copy; everything else (TLB misses, device registers, accesses that cross a page,
// stores to pages with decoded code, every access in detailed mode) goes through memory.cc. All return false on a guest
// fault, which is then in Core::fault.
#pragma once

#include <cstring>
#include <type_traits>

#include "cpu/x86/core.hh"
#include "cpu/x86/mmu/word.hh"

namespace moscope::x86 {

/// Whose rights an access has: those of the current privilege level, or the processor's own, for descriptor tables, TSS
/// and the like.
enum class As : std::uint8_t { current, system };

bool load_slow(Core &, Addr, void *to, unsigned size, As = As::current);
bool store_slow(Core &, Addr, const void *from, unsigned size, As = As::current);
/// The same with the instruction's rights, for 1, 2, 4, 8 and 16 bytes, with a short path for hits in detailed mode.
/// `e`: the TLB's entry for the address.
template <unsigned kBytes> LoadedWord<kBytes> load_sized(Core &, Addr, Tlb::Direct &e);
template <unsigned kBytes> bool store_sized(Core &, Addr, Word<kBytes>, Tlb::Direct &e);
/// In detailed mode: of `n` adjacent stores of the same bytes, makes the next ones that can take that path together.
/// Returns how many; 0: the next one has to be stored alone.
template <unsigned kBytes> std::uint64_t store_several(Core &, Addr, const void *from, std::uint64_t n);
template <unsigned kBytes> inline constexpr bool kSized = kBytes <= 16 && !(kBytes & (kBytes - 1));
/// f(context, bytes) runs once on the bytes, with write permission; `locked`: as one indivisible access.
bool modify_slow(Core &, Addr, unsigned size, void (*f)(void *, void *), void *context, bool locked);
/// The same as a load and a store, of 1, 2, 4 and 8 bytes.
template <unsigned kBytes> bool modify_sized(Core &, Addr, void (*f)(void *, void *), void *context);
/// Makes the checks of a store with the instruction's rights, but no store. False: it would fault.
bool may_store(Core &, Addr, unsigned size);

/// Linear address of a memory operand with masking and segment checks (segment.cc); false on #GP, #SS.
bool legacy_address(Core &, const Op *, unsigned size, bool write, Addr &out, unsigned skip = 0);
/// The same by value, so that the address, which mostly needs no such call, stays in a register.
struct Addressed {
    std::uint64_t ok;
    Addr at;
};
Addressed legacy_address(Core &, const Op *, unsigned size, bool write, unsigned skip);

/// Linear address of the memory operand of `op`, or of the part of it that begins `skip` bytes into it. A part's offset
/// wraps at the address size; a part that begins below this limit and extends over it does not wrap within itself.
inline bool address(Core &c, const Op *op, unsigned size, bool write, Addr &out, unsigned skip = 0) {
    const auto *file = reinterpret_cast<const std::uint8_t *>(c.r);
    std::uint64_t b, i;
    std::memcpy(&b, file + op->base, 8);
    std::memcpy(&i, file + op->index, 8);
    if (__builtin_expect(op->legacy, 0)) {
        const Addressed found = legacy_address(c, op, size, write, skip);
        out = found.at;
        return found.ok;
    }
    out = b + (i << op->scale) + static_cast<std::int64_t>(op->disp) + c.seg[op->seg].base + skip;
    return true;
}
/// The offset alone (LEA): no segment base.
std::uint64_t effective_offset(const Core &, const Op *);
/// An offset, cut to the instruction's address size.
inline std::uint64_t wrap_offset(const Op *op, std::uint64_t a) {
    return op->address_bytes == 8 ? a : op->address_bytes == 4 ? a & 0xffffffff : a & 0xffff;
}

template <class T> inline bool fits_page(Addr a) { return sizeof(T) == 1 || (a & 0xfff) <= 0x1000 - sizeof(T); }

template <class T> inline bool load(Core &c, Addr a, T &out) {
    Tlb::Direct &e = c.tlb->direct_at(a);
    if (__builtin_expect(e.read == (a & ~Addr{0xfff}) && fits_page<T>(a), 1)) {
        std::memcpy(&out, reinterpret_cast<const void *>(e.distance + a), sizeof(T));
        return true;
    }
    if constexpr (kSized<sizeof(T)>) {
        const LoadedWord<sizeof(T)> loaded = load_sized<sizeof(T)>(c, a, e);
        if (loaded.ok)
            loaded.word.put(&out);
        return loaded.ok;
    } else
        return load_slow(c, a, &out, sizeof(T));
}

template <class T> inline bool store(Core &c, Addr a, const T &value) {
    Tlb::Direct &e = c.tlb->direct_at(a);
    if (__builtin_expect(e.write == (a & ~Addr{0xfff}) && fits_page<T>(a), 1)) {
        std::memcpy(reinterpret_cast<void *>(e.distance + a), &value, sizeof(T));
        return true;
    }
    if constexpr (kSized<sizeof(T)>)
        return store_sized<sizeof(T)>(c, a, Word<sizeof(T)>::of(&value), e);
    else
        return store_slow(c, a, &value, sizeof(T));
}

/// value = f(value). `locked` as the instruction's LOCK prefix says. f runs once, and only if nothing faults.
template <class T, class F> inline bool modify(Core &c, Addr a, bool locked, F &&f) {
    const Tlb::Direct &e = c.tlb->direct_at(a);
    if (__builtin_expect(e.write == (a & ~Addr{0xfff}) && fits_page<T>(a), 1)) {
        T x;
        void *p = reinterpret_cast<void *>(e.distance + a);
        std::memcpy(&x, p, sizeof(T));
        x = f(x);
        std::memcpy(p, &x, sizeof(T));
        return true;
    }
    using G = std::remove_reference_t<F>;
    const auto apply = [](void *context, void *bytes) {
        T x;
        std::memcpy(&x, bytes, sizeof(T));
        x = (*static_cast<G *>(context))(x);
        std::memcpy(bytes, &x, sizeof(T));
    };
    void *const context = const_cast<std::remove_const_t<G> *>(&f);
    if constexpr (kSized<sizeof(T)> && sizeof(T) <= 8)
        if (!locked)
            return modify_sized<sizeof(T)>(c, a, apply, context);
    return modify_slow(c, a, sizeof(T), apply, context, locked);
}

// Parts of an operand that the processor moves one by one: far pointers, bounds, 80-bit values, areas of saved state.
template <class T> inline bool load_part(Core &c, const Op *op, unsigned skip, T &out) {
    Addr a;
    return address(c, op, sizeof(T), false, a, skip) && load(c, a, out);
}
template <class T> inline bool store_part(Core &c, const Op *op, unsigned skip, const T &value) {
    Addr a;
    return address(c, op, sizeof(T), true, a, skip) && store(c, a, value);
}
/// Whether the part can be written; it keeps its value. False: fault.
template <class T> inline bool try_part(Core &c, const Op *op, unsigned skip) {
    Addr a;
    return address(c, op, sizeof(T), true, a, skip) && modify<T>(c, a, false, [](T x) { return x; });
}

/// Surrounds an access to a device register or port: in detailed mode, all earlier events have happened before it, and
/// it takes time.
class DeviceAccess {
  public:
    explicit DeviceAccess(Core &c);
    ~DeviceAccess();
    DeviceAccess(const DeviceAccess &) = delete;
    DeviceAccess &operator=(const DeviceAccess &) = delete;

  private:
    Core &c_;
    std::uint64_t before_;
};

/// To be called after a write to DRAM, within one page: handles a write to decoded code.
void tell_written(Core &c, PhysAddr at, unsigned size);

/// For fences and serializing instructions: waits until all stores of the core have been performed (in functional mode,
/// they have).
void serialize(Core &);
/// Orders non-temporal stores before later stores; others are in order anyway.
void store_fence(Core &);
/// An instruction that begins when all earlier stores are performed (AMD 24592, serializing instructions).
template <const Op *(*f)(Core &, const Op *)> const Op *serializing(Core &c, const Op *op) {
    serialize(c);
    return f(c, op);
}

/// Reads of descriptor tables and TSS, with the processor's own rights.
template <class T> inline bool load_system(Core &c, Addr a, T &out) {
    return load_slow(c, a, &out, sizeof(T), As::system);
}
template <class T> inline bool store_system(Core &c, Addr a, const T &value) {
    return store_slow(c, a, &value, sizeof(T), As::system);
}

// --- registers by byte offset
template <class T> inline T reg(const Core &c, unsigned offset) {
    T x;
    std::memcpy(&x, reinterpret_cast<const std::uint8_t *>(c.r) + offset, sizeof(T));
    return x;
}
/// Writes of 32 bits clear the upper half, as in 64-bit mode; others keep the rest.
template <class T> inline void set_reg(Core &c, unsigned offset, T x) {
    auto *p = reinterpret_cast<std::uint8_t *>(c.r) + offset;
    if constexpr (sizeof(T) == 4) {
        const std::uint64_t wide = static_cast<std::uint32_t>(x);
        std::memcpy(p, &wide, 8);
    } else
        std::memcpy(p, &x, sizeof(T));
}

} // namespace moscope::x86
