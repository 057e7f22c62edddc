// SPDX-License-Identifier: BSD-3-Clause
// Pushes and pops with the stack's address size. The stack pointer changes only if the access succeeds.
#pragma once

#include "cpu/x86/mmu/memory.hh"
#include "cpu/x86/system/segment.hh"

namespace moscope::x86 {

/// Linear address of stack offset `sp`, with SS's checks outside 64-bit mode. False: #SS.
bool stack_address(Core &, std::uint64_t sp, unsigned size, bool write, Addr &out);

inline std::uint64_t stack_mask(const Core &c) {
    const unsigned n = c.stack_bytes();
    return n == 8 ? ~std::uint64_t{0} : n == 4 ? 0xffffffff : 0xffff;
}
inline void set_sp(Core &c, std::uint64_t sp) {
    const std::uint64_t m = stack_mask(c);
    c.r[rsp] = m == 0xffff ? (c.r[rsp] & ~m) | (sp & m) : sp & m;
}

/// A stack address that is not canonical raises #SS, whatever other operand the instruction has.
inline bool stack_fault(Core &c) {
    if (c.fault.not_canonical)
        c.fault.vector = exc_ss;
    return false;
}

template <class T> inline bool push(Core &c, T value) {
    if (__builtin_expect(c.code64(), 1)) {
        const std::uint64_t sp = c.r[rsp] - sizeof(T);
        if (!store<T>(c, sp, value))
            return stack_fault(c);
        c.r[rsp] = sp;
        return true;
    }
    const std::uint64_t sp = (c.r[rsp] - sizeof(T)) & stack_mask(c);
    Addr a;
    if (!stack_address(c, sp, sizeof(T), true, a) || !store<T>(c, a, value))
        return false;
    set_sp(c, sp);
    return true;
}

/// Reads what a pop would give, `skip` bytes above the stack pointer, which stays.
template <class T> inline bool peek_stack(Core &c, T &value, std::uint64_t skip = 0) {
    if (__builtin_expect(c.code64(), 1))
        return load<T>(c, c.r[rsp] + skip, value) || stack_fault(c);
    Addr a;
    return stack_address(c, (c.r[rsp] + skip) & stack_mask(c), sizeof(T), false, a) && load<T>(c, a, value);
}
inline void drop_stack(Core &c, std::uint64_t bytes) { set_sp(c, c.r[rsp] + bytes); }

template <class T> inline bool pop(Core &c, T &value) {
    if (!peek_stack<T>(c, value))
        return false;
    drop_stack(c, sizeof(T));
    return true;
}

} // namespace moscope::x86
