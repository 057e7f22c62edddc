// SPDX-License-Identifier: BSD-3-Clause
// CLI, STI, PUSHF and POPF with the rules of I/O privilege, virtual-8086 mode and protected virtual interrupts
// (AMD 24593, section 8.10; 24594 on each).
#include "cpu/x86/decode/lower.hh"
#include "cpu/x86/exec/integer/stack.hh"
#include "cpu/x86/system/far.hh"

namespace moscope::x86 {
namespace {

unsigned io_privilege(const Core &c) { return static_cast<unsigned>((c.flags.system & Flags::iopl) >> 12); }
bool may_change_if(const Core &c) { return c.cpl <= io_privilege(c); }
/// VIF stands in for IF where IF is out of reach.
bool has_virtual_if(const Core &c) {
    return c.virtual_8086() ? c.cr4 & cr4::vme : c.protected_mode() && c.cpl == 3 && (c.cr4 & cr4::pvi);
}

const Op *clear_interrupt_flag(Core &c, const Op *op) {
    if (may_change_if(c))
        c.flags.system &= ~Flags::if_;
    else if (has_virtual_if(c))
        c.flags.system &= ~Flags::vif;
    else
        return protection(c, op);
    return op + 1;
}

const Op *set_interrupt_flag(Core &c, const Op *op) {
    if (may_change_if(c)) {
        // The instruction after an STI that opens the gate still runs without interruption.
        if (!(c.flags.system & Flags::if_))
            c.shadow = 1;
        c.flags.system |= Flags::if_;
    } else if (has_virtual_if(c) && !(c.flags.system & Flags::vip))
        c.flags.system |= Flags::vif;
    else
        return protection(c, op);
    return op + 1;
}

/// PUSHF and POPF in virtual-8086 mode below I/O privilege 3.
bool restricted(const Core &c) { return c.virtual_8086() && io_privilege(c) != 3; }

template <class T> struct PushFlags {
    static const Op *run(Core &c, const Op *op) {
        std::uint64_t image = c.flags.value() & ~(Flags::rf | Flags::vm);
        if (restricted(c)) {
            if (sizeof(T) != 2 || !(c.cr4 & cr4::vme))
                return protection(c, op);
            image = (image & ~Flags::if_) | Flags::iopl | ((image & Flags::vif) ? Flags::if_ : 0);
        }
        return push<T>(c, static_cast<T>(image)) ? op + 1 : c.fault_at(op);
    }
};

template <class T> struct PopFlags {
    static const Op *run(Core &c, const Op *op) {
        T x;
        std::uint64_t mask = changeable_flags(c, sizeof(T));
        if (restricted(c) && (sizeof(T) != 2 || !(c.cr4 & cr4::vme)))
            return protection(c, op);
        if (!peek_stack(c, x))
            return c.fault_at(op);
        std::uint64_t value = x;
        if (restricted(c)) {
            if ((value & Flags::tf) || ((value & Flags::if_) && (c.flags.system & Flags::vip)))
                return protection(c, op);
            value |= (value & Flags::if_) ? Flags::vif : 0;
            mask |= Flags::vif;
        }
        drop_stack(c, sizeof(T));
        write_flags(c, value, mask);
        return op + 1;
    }
};

const Form kForms[] = {
    {ZYDIS_MNEMONIC_CLI, clear_interrupt_flag},
    {ZYDIS_MNEMONIC_STI, set_interrupt_flag, true},
    {{ZYDIS_MNEMONIC_PUSHF, ZYDIS_MNEMONIC_PUSHFD, ZYDIS_MNEMONIC_PUSHFQ}, lower_sized<PushFlags>},
    {{ZYDIS_MNEMONIC_POPF, ZYDIS_MNEMONIC_POPFD, ZYDIS_MNEMONIC_POPFQ}, lower_sized<PopFlags>, true},
};
const Group kGroup("flags register", kForms);

} // namespace
} // namespace moscope::x86
