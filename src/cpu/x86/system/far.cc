// SPDX-License-Identifier: BSD-3-Clause
#include "cpu/x86/system/far.hh"

#include "cpu/x86/mmu/paging.hh"
#include "cpu/x86/system/segment.hh"
#include "cpu/x86/system/task.hh"

namespace moscope::x86 {

std::uint64_t changeable_flags(const Core &c, unsigned bytes) {
    using F = Flags;
    std::uint64_t mask = F::kArithmetic | F::tf | F::df | F::nt | F::ac | F::id;
    if (c.cpl <= (c.flags.system & F::iopl) >> 12)
        mask |= F::if_;
    if (c.cpl == 0)
        mask |= F::iopl;
    return bytes == 2 ? mask & 0xffff : mask;
}

void write_flags(Core &c, std::uint64_t value, std::uint64_t mask) {
    c.flags.set_value((c.flags.value() & ~mask) | (value & mask));
    c.choose_tlb();
}

bool check_target(Core &c, const Segment &code, std::uint64_t offset) {
    const bool fine = c.long_mode() && code.long_mode() ? canonical(offset) : offset <= code.limit;
    return fine || c.raise(exc_gp, 0);
}

namespace {

std::uint64_t cut(std::uint64_t offset, unsigned bytes) {
    return bytes == 8 ? offset : offset & (bytes == 4 ? 0xffffffff : 0xffff);
}

/// Checks a code segment as the target of a transfer: its kind, its presence, and that its DPL is allowed (`dpl_fine`).
bool check_code(Core &c, const Segment &s, bool dpl_fine) {
    const bool mixed = c.long_mode() && s.long_mode() && s.big();
    if (!s.code() || mixed || !dpl_fine)
        return c.raise(exc_gp, selector_error(s.selector));
    return s.present() || c.raise(exc_np, selector_error(s.selector));
}

bool conforming(const Segment &s) { return s.attr & 4; }

bool real_transfer(Core &c, std::uint16_t selector, std::uint64_t offset) {
    if (offset > (c.virtual_8086() ? 0xffff : c.seg[cs].limit))
        return c.raise(exc_gp, 0);
    load_real_segment(c, cs, selector);
    c.rip = offset;
    return true;
}

/// Whether a far JMP or CALL may go to a code segment without a gate.
bool check_direct(Core &c, const Segment &s) {
    const bool fine = conforming(s) ? s.dpl() <= c.cpl : rpl(s.selector) <= c.cpl && s.dpl() == c.cpl;
    return check_code(c, s, fine);
}

struct Gate {
    std::uint16_t selector = 0;
    std::uint64_t offset = 0;
    unsigned parameters = 0;
    unsigned bytes = 4; ///< of what is pushed
    Segment code;
    std::uint64_t descriptor = 0;
    bool inner = false;
};

/// A call gate and the code segment behind it.
bool read_gate(Core &c, std::uint16_t selector, std::uint64_t d, bool call, Gate &g) {
    const Segment gate = unpack(selector, d);
    if (gate.dpl() < c.cpl || gate.dpl() < rpl(selector))
        return c.raise(exc_gp, selector_error(selector));
    if (!gate.present())
        return c.raise(exc_np, selector_error(selector));
    g.selector = static_cast<std::uint16_t>(d >> 16);
    g.offset = d & 0xffff;
    g.parameters = static_cast<unsigned>(d >> 32 & 31);
    g.bytes = 2;
    if (gate.type() == sys_call) {
        g.offset |= d >> 48 << 16;
        g.bytes = 4;
    }
    if (c.long_mode()) {
        std::uint64_t high;
        if (!read_descriptor_high(c, selector, high, exc_gp))
            return false;
        if (high >> 40 & 31)
            return c.raise(exc_gp, selector_error(selector));
        g.offset |= high << 32;
        g.bytes = 8;
        g.parameters = 0;
    }
    if (null_selector(g.selector))
        return c.raise(exc_gp, 0);
    if (!read_descriptor(c, g.selector, g.descriptor, exc_gp))
        return false;
    g.code = unpack(g.selector, g.descriptor);
    const unsigned dpl = g.code.dpl();
    const bool fine = call || conforming(g.code) ? dpl <= c.cpl : dpl == c.cpl;
    if (c.long_mode() && (!g.code.long_mode() || g.code.big()))
        return c.raise(exc_gp, selector_error(g.selector));
    if (!check_code(c, g.code, fine) || !check_target(c, g.code, g.offset))
        return false;
    g.inner = call && !conforming(g.code) && dpl < c.cpl;
    return mark_accessed(c, g.selector, g.descriptor, g.code);
}

bool call_inner(Core &c, const Gate &g, std::uint64_t next) {
    const unsigned cpl = g.code.dpl();
    FarStack from = FarStack::current(c);
    FarStack to{c, {}, 0, 8, false};
    if (c.long_mode()) {
        if (!tss_stack64(c, cpl, to.sp))
            return false;
        to.ss.selector = static_cast<std::uint16_t>(cpl);
        to.ss.limit = c.seg[ss].limit;
    } else {
        std::uint16_t selector;
        if (!tss_stack(c, cpl, selector, to.sp) || !check_stack_segment(c, selector, cpl, exc_ts, to.ss))
            return false;
        to.width = to.ss.big() ? 4 : 2;
        to.error = selector_error(selector);
    }
    if (!to.push(c.seg[ss].selector, g.bytes) || !to.push(c.r[rsp], g.bytes))
        return false;
    for (unsigned i = g.parameters; i-- > 0;) {
        FarStack parameter = from;
        parameter.sp += i * g.bytes;
        std::uint64_t x;
        if (!parameter.pop(x, g.bytes) || !to.push(x, g.bytes))
            return false;
    }
    if (!to.push(c.seg[cs].selector, g.bytes) || !to.push(next, g.bytes))
        return false;
    c.seg[ss] = to.ss;
    set_code_segment(c, g.code, cpl);
    to.commit_pointer();
    c.rip = g.offset;
    return true;
}

/// A far JMP or CALL whose selector is of a call gate, a task gate or a TSS.
bool transfer_by_system_descriptor(Core &c, std::uint16_t selector, std::uint64_t d, bool call, std::uint64_t next) {
    const Segment s = unpack(selector, d);
    const unsigned type = s.type();
    if (type == sys_call || (type == sys_call16 && !c.long_mode())) {
        Gate g;
        if (!read_gate(c, selector, d, call, g))
            return false;
        if (g.inner)
            return call_inner(c, g, next);
        FarStack st = FarStack::current(c);
        if (call && (!st.push(c.seg[cs].selector, g.bytes) || !st.push(next, g.bytes)))
            return false;
        set_code_segment(c, g.code, c.cpl);
        st.commit_pointer();
        c.rip = g.offset;
        return true;
    }
    if (!c.long_mode() && (type == sys_tss || type == sys_tss16 || type == sys_task_gate)) {
        if (s.dpl() < c.cpl || s.dpl() < rpl(selector))
            return c.raise(exc_gp, selector_error(selector));
        if (!s.present())
            return c.raise(exc_np, selector_error(selector));
        const auto tss = type == sys_task_gate ? static_cast<std::uint16_t>(d >> 16) : selector;
        return task_switch(c, tss, call ? TaskSwitch::call : TaskSwitch::jump, next);
    }
    return c.raise(exc_gp, selector_error(selector));
}

/// Pushes the return address of a far CALL.
bool push_return(FarStack &st, std::uint64_t next, unsigned bytes) {
    return st.push(st.c.seg[cs].selector, bytes) && st.push(next, bytes);
}

/// A far JMP or CALL of protected mode: through a gate or a task, or to a code segment. `stack`: of a CALL, which pushes
/// items of `bytes` there before the offset is checked. False: fault.
bool transfer(Core &c, std::uint16_t selector, std::uint64_t offset, std::uint64_t next, FarStack *stack,
              unsigned bytes) {
    if (null_selector(selector))
        return c.raise(exc_gp, 0);
    std::uint64_t d;
    if (!read_descriptor(c, selector, d, exc_gp))
        return false;
    if (!(d >> 44 & 1))
        return transfer_by_system_descriptor(c, selector, d, stack != nullptr, next);
    Segment s = unpack(selector, d);
    if (!check_direct(c, s) || (stack && !push_return(*stack, next, bytes)) || !check_target(c, s, offset) ||
        !mark_accessed(c, selector, d, s))
        return false;
    if (stack)
        stack->commit_pointer();
    set_code_segment(c, s, c.cpl);
    c.rip = offset;
    return true;
}

} // namespace

bool far_jump(Core &c, std::uint16_t selector, std::uint64_t offset, unsigned bytes, std::uint64_t next) {
    offset = cut(offset, bytes);
    if (c.real_mode())
        return real_transfer(c, selector, offset);
    return transfer(c, selector, offset, next, nullptr, bytes);
}

bool far_call(Core &c, std::uint16_t selector, std::uint64_t offset, unsigned bytes, std::uint64_t next) {
    offset = cut(offset, bytes);
    FarStack st = FarStack::current(c);
    if (!c.real_mode())
        return transfer(c, selector, offset, next, &st, bytes);
    if (!push_return(st, next, bytes) || !real_transfer(c, selector, offset))
        return false;
    st.commit_pointer();
    return true;
}

namespace {

/// Where a far return goes: CS with its checks against the current and the popped privilege level.
bool check_return(Core &c, std::uint16_t selector, std::uint64_t offset, Segment &s) {
    if (null_selector(selector))
        return c.raise(exc_gp, 0);
    if (rpl(selector) < c.cpl)
        return c.raise(exc_gp, selector_error(selector));
    std::uint64_t d;
    if (!read_descriptor(c, selector, d, exc_gp))
        return false;
    s = unpack(selector, d);
    const bool fine = conforming(s) ? s.dpl() <= rpl(selector) : s.dpl() == rpl(selector);
    return check_code(c, s, fine) && check_target(c, s, offset) && mark_accessed(c, selector, d, s);
}

/// Checks the SS that a return to an outer level, or IRETQ to the same one, loads.
bool check_return_stack(Core &c, std::uint16_t selector, const Segment &code, Segment &out) {
    const unsigned level = rpl(code.selector);
    if (null_selector(selector) && c.long_mode() && code.long_mode() && level != 3 && rpl(selector) == level) {
        out = c.seg[ss];
        out.selector = selector;
        out.attr = 0;
        return true;
    }
    return check_stack_segment(c, selector, level, exc_gp, out);
}

/// Nulls the data segment registers whose segments the outer level may not use. A null selector of 1 to 3 becomes 0.
void drop_inner_segments(Core &c) {
    for (Seg which : {es, ds, fs, gs}) {
        Segment &s = c.seg[which];
        const bool bound = !s.code() || !conforming(s);
        if (!s.present() || (bound && s.dpl() < c.cpl))
            set_null_segment(c, which, 0);
    }
}

void set_outer_stack(Core &c, const Segment &stack, std::uint64_t sp, unsigned drop) {
    c.seg[ss] = stack;
    FarStack to = FarStack::current(c);
    to.sp = sp + drop;
    to.commit_pointer();
}

} // namespace

bool far_return(Core &c, unsigned bytes, unsigned drop) {
    FarStack st = FarStack::current(c);
    std::uint64_t ip, selector64;
    if (!st.pop(ip, bytes) || !st.pop(selector64, bytes))
        return false;
    const auto selector = static_cast<std::uint16_t>(selector64);
    if (c.real_mode()) {
        if (!real_transfer(c, selector, ip))
            return false;
        st.sp += drop;
        st.commit_pointer();
        return true;
    }
    Segment s;
    if (!check_return(c, selector, ip, s))
        return false;
    st.sp += drop;
    if (rpl(selector) == c.cpl) {
        st.commit_pointer();
        set_code_segment(c, s, c.cpl);
    } else {
        std::uint64_t sp, stack_selector;
        Segment stack;
        if (!st.pop(sp, bytes) || !st.pop(stack_selector, bytes) ||
            !check_return_stack(c, static_cast<std::uint16_t>(stack_selector), s, stack))
            return false;
        set_code_segment(c, s, rpl(selector));
        set_outer_stack(c, stack, sp, drop);
        drop_inner_segments(c);
    }
    c.rip = ip;
    return true;
}

namespace {

bool return_to_virtual_8086(Core &c, FarStack &st, std::uint64_t ip, std::uint16_t code, std::uint64_t flags) {
    std::uint64_t sp, x[5];
    if (!st.pop(sp, 4))
        return false;
    for (std::uint64_t &selector : x)
        if (!st.pop(selector, 4))
            return false;
    if (ip > 0xffff)
        return c.raise(exc_gp, 0);
    c.flags.set_value(flags & 0x3f7fd5);
    c.cpl = 3;
    load_real_segment(c, cs, code);
    constexpr Seg order[5] = {ss, es, ds, fs, gs};
    for (unsigned i = 0; i < 5; ++i)
        load_real_segment(c, order[i], static_cast<std::uint16_t>(x[i]));
    c.r[rsp] = sp;
    c.rip = ip;
    return true;
}

/// IRET in real and virtual-8086 mode.
bool real_interrupt_return(Core &c, unsigned bytes) {
    const bool v86 = c.virtual_8086();
    const bool virtual_if = v86 && (c.flags.system & Flags::iopl) != Flags::iopl;
    if (virtual_if && (!(c.cr4 & cr4::vme) || bytes != 2))
        return c.raise(exc_gp, 0);
    FarStack st = FarStack::current(c);
    std::uint64_t ip, code, flags;
    if (!st.pop(ip, bytes) || !st.pop(code, bytes) || !st.pop(flags, bytes))
        return false;
    std::uint64_t mask = Flags::kArithmetic | Flags::tf | Flags::df | Flags::nt | Flags::ac | Flags::id | Flags::if_;
    if (bytes == 2)
        mask &= 0xffff;
    else
        mask |= Flags::rf;
    if (!v86)
        mask |= Flags::iopl;
    if (virtual_if) {
        if ((flags & Flags::tf) || ((flags & Flags::if_) && (c.flags.system & Flags::vip)))
            return c.raise(exc_gp, 0);
        mask = (mask & ~Flags::if_) | Flags::vif;
        flags = (flags & ~Flags::vif) | ((flags & Flags::if_) ? Flags::vif : 0);
    }
    if (!real_transfer(c, static_cast<std::uint16_t>(code), ip))
        return false;
    st.commit_pointer();
    write_flags(c, flags, mask);
    c.nmi_blocked = false;
    return true;
}

} // namespace

bool interrupt_return(Core &c, unsigned bytes, std::uint64_t next) {
    if (c.real_mode())
        return real_interrupt_return(c, bytes);
    if (c.flags.system & Flags::nt) {
        if (c.long_mode())
            return c.raise(exc_gp, 0);
        return task_return(c, next);
    }
    FarStack st = FarStack::current(c);
    std::uint64_t ip, selector64, flags;
    if (!st.pop(ip, bytes) || !st.pop(selector64, bytes) || !st.pop(flags, bytes))
        return false;
    const auto selector = static_cast<std::uint16_t>(selector64);
    if ((flags & Flags::vm) && bytes == 4 && c.cpl == 0 && !c.long_mode()) {
        if (!return_to_virtual_8086(c, st, ip, selector, flags))
            return false;
        c.nmi_blocked = false;
        return true;
    }
    Segment s;
    if (!check_return(c, selector, ip, s))
        return false;
    const std::uint64_t mask = changeable_flags(c, bytes) | (bytes != 2 ? Flags::rf : 0) |
                               (c.cpl == 0 && bytes != 2 ? Flags::vif | Flags::vip : 0);
    if (rpl(selector) == c.cpl && !c.code64()) {
        st.commit_pointer();
        set_code_segment(c, s, c.cpl);
    } else {
        const bool outer = rpl(selector) > c.cpl;
        std::uint64_t sp, stack_selector;
        Segment stack;
        if (!st.pop(sp, bytes) || !st.pop(stack_selector, bytes) ||
            !check_return_stack(c, static_cast<std::uint16_t>(stack_selector), s, stack))
            return false;
        set_code_segment(c, s, rpl(selector));
        set_outer_stack(c, stack, sp, 0);
        if (outer)
            drop_inner_segments(c);
    }
    write_flags(c, flags, mask);
    c.rip = ip;
    c.nmi_blocked = false;
    return true;
}

} // namespace moscope::x86
