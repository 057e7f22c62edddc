// SPDX-License-Identifier: BSD-3-Clause
#include "cpu/x86/system/task.hh"

#include "cpu/x86/mmu/memory.hh"
#include "cpu/x86/mmu/paging.hh"
#include "cpu/x86/system/far.hh"
#include "cpu/x86/system/interrupts.hh"
#include "cpu/x86/system/segment.hh"

namespace moscope::x86 {

namespace {

/// Where things lie in a task-state segment of 16 or 32 bits; general registers and segments follow each other in the
/// order of their encodings (ES, CS, SS, DS, FS, GS).
struct Layout {
    unsigned bytes, ip, flags, general, segments, segment_count, ldt, least_limit;
};
constexpr Layout k16 = {2, 0x0e, 0x10, 0x12, 0x22, 4, 0x2a, 0x2b};
constexpr Layout k32 = {4, 0x20, 0x24, 0x28, 0x48, 6, 0x60, 0x67};
constexpr unsigned kCr3 = 0x1c, kTrap = 0x64;    // of a TSS of 32 bits only
constexpr std::uint64_t kTaskSwitched = 1 << 15; // DR6.BT

const Layout &layout_of(const Segment &tss) { return (tss.type() & 8) ? k32 : k16; }

bool put(Core &c, Addr a, std::uint64_t x, unsigned bytes) { return store_slow(c, a, &x, bytes, As::system); }
bool get(Core &c, Addr a, std::uint64_t &x, unsigned bytes) {
    x = 0;
    return load_slow(c, a, &x, bytes, As::system);
}

bool save_old(Core &c, std::uint64_t flags, std::uint64_t next) {
    const Layout &l = layout_of(c.tr);
    const Addr base = c.tr.base;
    if (!put(c, base + l.ip, next, l.bytes) || !put(c, base + l.flags, flags, l.bytes))
        return false;
    for (unsigned i = 0; i < 8; ++i)
        if (!put(c, base + l.general + i * l.bytes, c.r[i], l.bytes))
            return false;
    for (unsigned i = 0; i < l.segment_count; ++i)
        if (!put(c, base + l.segments + i * l.bytes, c.seg[i].selector, 2))
            return false;
    return true;
}

struct Incoming {
    std::uint64_t ip, flags, cr3 = 0, ldt, trap = 0, general[8], segments[kSegs] = {};
};

bool read_new(Core &c, const Segment &tss, Incoming &n) {
    const Layout &l = layout_of(tss);
    if (!get(c, tss.base + l.ip, n.ip, l.bytes) || !get(c, tss.base + l.flags, n.flags, l.bytes) ||
        !get(c, tss.base + l.ldt, n.ldt, 2) ||
        (l.bytes == 4 && (!get(c, tss.base + kCr3, n.cr3, 4) || !get(c, tss.base + kTrap, n.trap, 2))))
        return false;
    for (unsigned i = 0; i < 8; ++i)
        if (!get(c, tss.base + l.general + i * l.bytes, n.general[i], l.bytes))
            return false;
    for (unsigned i = 0; i < l.segment_count; ++i)
        if (!get(c, tss.base + l.segments + i * l.bytes, n.segments[i], 2))
            return false;
    return true;
}

bool load_ldt(Core &c, std::uint16_t selector) {
    c.ldtr = {};
    c.ldtr.selector = selector;
    if (null_selector(selector))
        return true;
    std::uint64_t d;
    if (selector & 4)
        return c.raise(exc_ts, selector_error(selector));
    if (!read_descriptor(c, selector, d, exc_ts))
        return false;
    const Segment s = unpack(selector, d);
    if ((s.attr & Segment::kCodeOrData) || s.type() != sys_ldt || !s.present())
        return c.raise(exc_ts, selector_error(selector));
    c.ldtr = s;
    return true;
}

bool load_code(Core &c, std::uint16_t selector) {
    std::uint64_t d;
    if (null_selector(selector))
        return c.raise(exc_ts, 0);
    if (!read_descriptor(c, selector, d, exc_ts))
        return false;
    Segment s = unpack(selector, d);
    const bool fine = s.code() && ((s.attr & 4) ? s.dpl() <= rpl(selector) : s.dpl() == rpl(selector));
    if (!fine)
        return c.raise(exc_ts, selector_error(selector));
    if (!s.present())
        return c.raise(exc_np, selector_error(selector));
    if (!mark_accessed(c, selector, d, s))
        return false;
    set_code_segment(c, s, rpl(selector));
    return true;
}

/// Loads the segments of the new task. Faults from here on are those of the new task.
bool load_segments(Core &c, const Incoming &n) {
    if (!load_ldt(c, static_cast<std::uint16_t>(n.ldt)))
        return false;
    if (c.virtual_8086()) {
        c.cpl = 3;
        for (unsigned i = 0; i < kSegs; ++i)
            load_real_segment(c, static_cast<Seg>(i), static_cast<std::uint16_t>(n.segments[i]));
        return true;
    }
    Segment stack;
    if (!load_code(c, static_cast<std::uint16_t>(n.segments[cs])) ||
        !check_stack_segment(c, static_cast<std::uint16_t>(n.segments[ss]), c.cpl, exc_ts, stack))
        return false;
    c.seg[ss] = stack;
    for (Seg which : {es, ds, fs, gs})
        if (!load_segment(c, which, static_cast<std::uint16_t>(n.segments[which]))) {
            if (c.fault.vector == exc_gp)
                c.fault.vector = exc_ts;
            return false;
        }
    return check_target(c, c.seg[cs], c.rip);
}

bool push_error(Core &c, std::uint32_t error, unsigned bytes) {
    FarStack st = FarStack::current(c);
    if (!st.push(error, bytes))
        return false;
    st.commit_pointer();
    return true;
}

} // namespace

bool task_switch(Core &c, std::uint16_t selector, TaskSwitch why, std::uint64_t next, const std::uint32_t *error) {
    const unsigned vector = why == TaskSwitch::iret ? exc_ts : exc_gp;
    std::uint64_t d;
    if (null_selector(selector) || (selector & 4))
        return c.raise(vector, selector_error(selector));
    if (!read_descriptor(c, selector, d, vector))
        return false;
    Segment tss = unpack(selector, d);
    const bool system = !(tss.attr & Segment::kCodeOrData), busy = tss.type() & 2;
    if (!system || (tss.type() & 5) != 1 || busy != (why == TaskSwitch::iret))
        return c.raise(vector, selector_error(selector));
    if (!tss.present())
        return c.raise(exc_np, selector_error(selector));
    if (tss.limit < layout_of(tss).least_limit)
        return c.raise(exc_ts, selector_error(selector));

    Incoming n;
    const bool nested = why == TaskSwitch::call || why == TaskSwitch::interrupt;
    const std::uint64_t flags = c.flags.value() & ~(why == TaskSwitch::iret ? Flags::nt : 0);
    if (!read_new(c, tss, n) || !save_old(c, flags, next))
        return false;
    if (!nested) {
        std::uint64_t old;
        if (!read_descriptor(c, c.tr.selector, old, exc_ts) ||
            !change_descriptor_type(c, c.tr.selector, old, c.tr.type() & ~2u))
            return false;
    } else if (!put(c, tss.base, c.tr.selector, 2))
        return false;
    if (!busy) {
        tss.attr |= 2;
        if (!change_descriptor_type(c, selector, d, tss.type()))
            return false;
    }

    const Layout &l = layout_of(tss);
    c.tr = tss;
    c.cr0 |= cr0::ts;
    if (c.paging() && l.bytes == 4) {
        c.cr3 = n.cr3;
        c.flush_tlb(false);
    }
    c.flags.set_value((n.flags & 0x3f7fd5) | (nested ? Flags::nt : 0));
    for (unsigned i = 0; i < 8; ++i)
        c.r[i] = l.bytes == 4 ? n.general[i] : n.general[i] | 0xffff0000;
    c.rip = n.ip;
    c.dr[7] &= ~std::uint64_t{0x155}; // local breakpoints
    c.debug_changed();
    if (!load_segments(c, n)) {
        deliver_fault(c);
        return true;
    }
    if (error && !push_error(c, *error, l.bytes))
        return false;
    if (n.trap & 1) {
        c.dr[6] |= kTaskSwitched;
        c.raise(exc_db);
        deliver_fault(c);
    }
    return true;
}

bool task_return(Core &c, std::uint64_t next) {
    std::uint64_t link;
    return get(c, c.tr.base, link, 2) && task_switch(c, static_cast<std::uint16_t>(link), TaskSwitch::iret, next);
}

} // namespace moscope::x86
