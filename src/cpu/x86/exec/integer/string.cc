// SPDX-License-Identifier: BSD-3-Clause
// String instructions with their repeat prefixes (AMD 24594, 24592 section 3.3.6). A repeated one works for at most a
// page's worth at a time and then leaves the block to be run again, so that interrupts get in; registers are up to
// date after every element that completed, so faults and interrupts find them as the manual says.
#include <algorithm>

#include "cpu/x86/exec/integer/string_operands.hh"

namespace moscope::x86 {
namespace {

constexpr std::uint64_t kBurstBytes = 4096;

std::int64_t step_of(const Core &c, unsigned size) {
    return (c.flags.system & Flags::df) ? -static_cast<std::int64_t>(size) : static_cast<std::int64_t>(size);
}
void advance(Core &c, const Op *op, unsigned r, std::int64_t by) {
    set_string_register(c, op, r, string_register(c, op, r) + static_cast<std::uint64_t>(by));
}
/// Moves both pointers by an element.
template <class T> void advance_both(Core &c, const Op *op) {
    const auto step = step_of(c, sizeof(T));
    advance(c, op, rsi, step);
    advance(c, op, rdi, step);
}
/// The element at [seg:rSI], or at ES:[rDI]. False: fault.
template <class T> bool load_source(Core &c, const Op *op, T &x) {
    Addr a;
    return string_address(c, op, rsi, op->seg, sizeof(T), false, a) && load(c, a, x);
}
template <class T> bool load_destination(Core &c, const Op *op, T &x) {
    Addr a;
    return string_address(c, op, rdi, op->dst, sizeof(T), false, a) && load(c, a, x);
}
template <class T> bool store_destination(Core &c, const Op *op, const T &x) {
    Addr a;
    return string_address(c, op, rdi, op->dst, sizeof(T), true, a) && store(c, a, x);
}

/// Host address of the page's bytes at `a` if they may be accessed directly.
const std::byte *readable(const Core &c, Addr a) {
    const Tlb::Direct &e = c.tlb->direct_at(a);
    return e.read == (a & ~Addr{0xfff}) ? reinterpret_cast<const std::byte *>(e.distance + a) : nullptr;
}
std::byte *writable(const Core &c, Addr a) {
    const Tlb::Direct &e = c.tlb->direct_at(a);
    return e.write == (a & ~Addr{0xfff}) ? reinterpret_cast<std::byte *>(e.distance + a) : nullptr;
}
/// Whole elements from `a` to the end of its page.
template <class T> std::uint64_t left_in_page(Addr a) { return (0x1000 - (a & 0xfff)) / sizeof(T); }

/// Members of each instruction: `one` does an element and moves the pointers; false: fault. `many` does up to n
/// elements, upwards and within a page, and returns how many; 0: `one` has to. `touch` writes back the pointers that
/// the instruction writes. Flags of a comparison are those of the last one.
template <class T> struct Movs {
    static constexpr bool kCompares = false;
    static void touch(Core &c, const Op *op) {
        advance(c, op, rsi, 0);
        advance(c, op, rdi, 0);
    }
    static bool one(Core &c, const Op *op) {
        T x;
        if (!load_source(c, op, x) || !store_destination(c, op, x))
            return false;
        advance_both<T>(c, op);
        return true;
    }
    static std::uint64_t many(Core &c, const Op *op, std::uint64_t n) {
        const Addr from = c.r[rsi] + c.seg[op->seg].base, to = c.r[rdi] + c.seg[op->dst].base;
        const std::byte *s = readable(c, from);
        std::byte *d = writable(c, to);
        if (!s || !d)
            return 0;
        n = std::min({n, left_in_page<T>(from), left_in_page<T>(to)});
        const auto gap = static_cast<std::uint64_t>(d - s);
        if (gap >= n * sizeof(T)) // also where the destination lies below
            std::memmove(d, s, n * sizeof(T));
        else // overlapping upwards: elements already written are read again
            for (std::uint64_t i = 0; i < n; ++i)
                std::memmove(d + i * sizeof(T), s + i * sizeof(T), sizeof(T));
        c.r[rsi] += n * sizeof(T);
        c.r[rdi] += n * sizeof(T);
        return n;
    }
};

template <class T> struct Stos {
    static constexpr bool kCompares = false;
    static void touch(Core &c, const Op *op) { advance(c, op, rdi, 0); }
    static bool one(Core &c, const Op *op) {
        if (!store_destination(c, op, reg<T>(c, rax * 8)))
            return false;
        advance(c, op, rdi, step_of(c, sizeof(T)));
        return true;
    }
    static std::uint64_t many(Core &c, const Op *op, std::uint64_t n) {
        const Addr to = c.r[rdi] + c.seg[op->dst].base;
        const T x = reg<T>(c, rax * 8);
        std::byte *d = writable(c, to);
        if (!d) {
            n = store_several<sizeof(T)>(c, to, &x, n);
            c.r[rdi] += n * sizeof(T);
            return n;
        }
        n = std::min(n, left_in_page<T>(to));
        for (std::uint64_t i = 0; i < n; ++i)
            std::memcpy(d + i * sizeof(T), &x, sizeof(T));
        c.r[rdi] += n * sizeof(T);
        return n;
    }
};

/// Instructions that proceed element by element and write no pointer before the first element.
template <bool kComparison> struct Singly {
    static constexpr bool kCompares = kComparison;
    static void touch(Core &, const Op *) {}
    static std::uint64_t many(Core &, const Op *, std::uint64_t) { return 0; }
};

template <class T> struct Lods : Singly<false> {
    static bool one(Core &c, const Op *op) {
        T x;
        if (!load_source(c, op, x))
            return false;
        set_reg<T>(c, rax * 8, x);
        advance(c, op, rsi, step_of(c, sizeof(T)));
        return true;
    }
};

template <class T> struct Cmps : Singly<true> {
    static bool one(Core &c, const Op *op) {
        T a, b;
        if (!load_destination(c, op, b) || !load_source(c, op, a))
            return false;
        c.flags.sub<T>(a, b, static_cast<T>(a - b));
        advance_both<T>(c, op);
        return true;
    }
};

template <class T> struct Scas : Singly<true> {
    static bool one(Core &c, const Op *op) {
        T b;
        if (!load_destination(c, op, b))
            return false;
        const T a = reg<T>(c, rax * 8);
        c.flags.sub<T>(a, b, static_cast<T>(a - b));
        advance(c, op, rdi, step_of(c, sizeof(T)));
        return true;
    }
};

template <class I> const Op *once(Core &c, const Op *op) { return I::one(c, op) ? op + 1 : c.fault_at(op); }

template <class I, unsigned kSize> const Op *repeated(Core &c, const Op *op) {
    std::uint64_t count = string_register(c, op, rcx);
    // With the trap flag set, every element counts as an instruction; so it does where it may meet a breakpoint.
    const bool singly = (c.flags.system & Flags::tf) || (c.watched & Core::kWatchData);
    std::uint64_t burst = singly ? 1 : kBurstBytes / kSize;
    if (op->address_bytes == 4) { // written, and so extended, even if nothing is done
        set_string_register(c, op, rcx, count);
        I::touch(c, op);
    }
    const Flags before =
        c.flags; // a comparison that has not ended (fault, interrupt, trap) shows its progress, but no flags
    const bool upwards = !op->legacy && !(c.flags.system & Flags::df);
    c.extra_cycles += std::min(count, burst) * kSize / 16 + singly;
    while (count && burst) {
        std::uint64_t n = upwards ? I::many(c, op, std::min(count, burst)) : 0;
        if (n == 0) {
            if (!I::one(c, op)) {
                c.flags = before;
                return c.fault_at(op);
            }
            n = 1;
        }
        count -= n;
        burst -= n;
        set_string_register(c, op, rcx, count);
        if (I::kCompares && c.flags.z() != (op->rep == 1))
            return op + 1;
    }
    if (!count)
        return op + 1;
    c.flags = before;
    return c.leave_before(op, Exit::restart);
}

template <template <class> class I> struct Select {
    template <class T> struct Once {
        static const Op *run(Core &c, const Op *op) { return once<I<T>>(c, op); }
    };
    template <class T> struct Repeated {
        static const Op *run(Core &c, const Op *op) { return repeated<I<T>, sizeof(T)>(c, op); }
    };
};

/// MOVSD and CMPSD are names of SSE instructions too, which this function does not take.
template <template <class> class I, unsigned kSize> Exec lower_string(const Insn &insn, Op &op) {
    if (insn.z.meta.category != ZYDIS_CATEGORY_STRINGOP)
        return nullptr;
    string_segments(insn, op);
    return op.rep ? by_size<Select<I>::template Repeated>(kSize) : by_size<Select<I>::template Once>(kSize);
}

const Form kForms[] = {
    {ZYDIS_MNEMONIC_MOVSB, lower_string<Movs, 1>}, {ZYDIS_MNEMONIC_MOVSW, lower_string<Movs, 2>},
    {ZYDIS_MNEMONIC_MOVSD, lower_string<Movs, 4>}, {ZYDIS_MNEMONIC_MOVSQ, lower_string<Movs, 8>},
    {ZYDIS_MNEMONIC_STOSB, lower_string<Stos, 1>}, {ZYDIS_MNEMONIC_STOSW, lower_string<Stos, 2>},
    {ZYDIS_MNEMONIC_STOSD, lower_string<Stos, 4>}, {ZYDIS_MNEMONIC_STOSQ, lower_string<Stos, 8>},
    {ZYDIS_MNEMONIC_LODSB, lower_string<Lods, 1>}, {ZYDIS_MNEMONIC_LODSW, lower_string<Lods, 2>},
    {ZYDIS_MNEMONIC_LODSD, lower_string<Lods, 4>}, {ZYDIS_MNEMONIC_LODSQ, lower_string<Lods, 8>},
    {ZYDIS_MNEMONIC_CMPSB, lower_string<Cmps, 1>}, {ZYDIS_MNEMONIC_CMPSW, lower_string<Cmps, 2>},
    {ZYDIS_MNEMONIC_CMPSD, lower_string<Cmps, 4>}, {ZYDIS_MNEMONIC_CMPSQ, lower_string<Cmps, 8>},
    {ZYDIS_MNEMONIC_SCASB, lower_string<Scas, 1>}, {ZYDIS_MNEMONIC_SCASW, lower_string<Scas, 2>},
    {ZYDIS_MNEMONIC_SCASD, lower_string<Scas, 4>}, {ZYDIS_MNEMONIC_SCASQ, lower_string<Scas, 8>},
};
const Group kGroup("string", kForms);

} // namespace
} // namespace moscope::x86
