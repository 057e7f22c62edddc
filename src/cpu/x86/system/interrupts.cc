// SPDX-License-Identifier: BSD-3-Clause
#include "cpu/x86/system/interrupts.hh"

#include "cpu/x86/mmu/memory.hh"
#include "cpu/x86/mmu/paging.hh"
#include "cpu/x86/system/far.hh"
#include "cpu/x86/system/msr.hh"
#include "cpu/x86/system/segment.hh"
#include "cpu/x86/system/task.hh"

namespace moscope::x86 {

namespace {

/// What is to be delivered.
struct Event {
    unsigned vector;
    Source source;
    bool has_error;
    std::uint32_t error;

    /// Error code of the faults that the vector's gate causes.
    std::uint32_t gate_error() const { return vector * 8 + 2; }
    /// RFLAGS.RF of the pushed image: set by faults, so that their instruction breakpoint does not strike again.
    std::uint64_t resume() const {
        const bool trap = vector == exc_db || vector == exc_bp || vector == exc_of;
        return source == Source::exception && !trap ? Flags::rf : 0;
    }
};

bool enter_real(Core &c, const Event &e) {
    if (e.vector * 4 + 3 > c.idtr.limit)
        return c.raise(exc_gp, e.gate_error());
    std::uint16_t ip, code;
    if (!load_system(c, c.idtr.base + e.vector * 4, ip) || !load_system(c, c.idtr.base + e.vector * 4 + 2, code))
        return false;
    FarStack st = FarStack::current(c);
    if (!st.push(c.flags.value(), 2) || !st.push(c.seg[cs].selector, 2) || !st.push(c.rip, 2))
        return false;
    st.commit_pointer();
    load_real_segment(c, cs, code);
    c.rip = ip;
    c.flags.system &= ~(Flags::if_ | Flags::tf | Flags::rf | Flags::ac);
    return true;
}

void clear_flags(Core &c, bool interrupt_gate) {
    c.flags.system &= ~(Flags::tf | Flags::nt | Flags::rf | Flags::vm | (interrupt_gate ? Flags::if_ : 0));
}

bool read_code(Core &c, std::uint16_t selector, Segment &s) {
    std::uint64_t d;
    if (null_selector(selector))
        return c.raise(exc_gp, 0);
    if (!read_descriptor(c, selector, d, exc_gp))
        return false;
    s = unpack(selector, d);
    const bool mode_fine = !c.long_mode() || (s.long_mode() && !s.big());
    if (!s.code() || s.dpl() > c.cpl || !mode_fine)
        return c.raise(exc_gp, selector_error(selector));
    if (!s.present())
        return c.raise(exc_np, selector_error(selector));
    return mark_accessed(c, selector, d, s);
}

bool enter_long(Core &c, const Event &e) {
    std::uint64_t gate[2];
    if (e.vector * 16 + 15 > c.idtr.limit)
        return c.raise(exc_gp, e.gate_error());
    if (!load_system(c, c.idtr.base + e.vector * 16, gate[0]) ||
        !load_system(c, c.idtr.base + e.vector * 16 + 8, gate[1]))
        return false;
    const Segment g = unpack(0, gate[0]);
    const bool is_gate = !(g.attr & Segment::kCodeOrData) && (g.type() == sys_interrupt || g.type() == sys_trap);
    if (!is_gate || (e.source == Source::software && g.dpl() < c.cpl))
        return c.raise(exc_gp, e.gate_error());
    if (!g.present())
        return c.raise(exc_np, e.gate_error());
    const std::uint64_t target = (gate[0] & 0xffff) | gate[0] >> 48 << 16 | gate[1] << 32;
    Segment code;
    if (!read_code(c, static_cast<std::uint16_t>(gate[0] >> 16), code))
        return false;

    const bool conforming = code.attr & 4;
    const unsigned cpl = conforming ? c.cpl : code.dpl();
    const unsigned ist = gate[0] >> 32 & 7;
    FarStack st{c, {}, c.r[rsp], 8, cpl == 3};
    if (ist ? !tss_stack64(c, 3 + ist, st.sp) : cpl != c.cpl && !tss_stack64(c, cpl, st.sp))
        return false;
    if (!canonical(target))
        return c.raise(exc_gp, 0);
    st.sp &= ~std::uint64_t{15};
    if (!st.push(c.seg[ss].selector, 8) || !st.push(c.r[rsp], 8) || !st.push(c.flags.value() | e.resume(), 8) ||
        !st.push(c.seg[cs].selector, 8) || !st.push(c.rip, 8) || (e.has_error && !st.push(e.error, 8)))
        return false;

    if (cpl != c.cpl)
        set_null_segment(c, ss, static_cast<std::uint16_t>(cpl));
    set_code_segment(c, code, cpl);
    c.r[rsp] = st.sp;
    c.rip = target;
    clear_flags(c, g.type() == sys_interrupt);
    return true;
}

bool enter_inner(Core &c, const Event &e, const Segment &code, unsigned bytes) {
    const unsigned cpl = code.dpl();
    FarStack st{c, {}, 0, 4, false};
    std::uint16_t selector;
    if (!tss_stack(c, cpl, selector, st.sp) || !check_stack_segment(c, selector, cpl, exc_ts, st.ss))
        return false;
    st.width = st.ss.big() ? 4 : 2;
    st.error = selector_error(selector);
    if (c.virtual_8086()) {
        for (Seg which : {gs, fs, ds, es})
            if (!st.push(c.seg[which].selector, bytes))
                return false;
    }
    if (!st.push(c.seg[ss].selector, bytes) || !st.push(c.r[rsp], bytes) ||
        !st.push(c.flags.value() | e.resume(), bytes) || !st.push(c.seg[cs].selector, bytes) ||
        !st.push(c.rip, bytes) || (e.has_error && !st.push(e.error, bytes)))
        return false;
    if (c.virtual_8086())
        for (Seg which : {gs, fs, ds, es})
            set_null_segment(c, which, 0);
    c.flags.system &= ~Flags::vm;
    c.seg[ss] = st.ss;
    set_code_segment(c, code, cpl);
    st.commit_pointer();
    return true;
}

bool enter_same(Core &c, const Event &e, const Segment &code, unsigned bytes) {
    FarStack st = FarStack::current(c);
    if (!st.push(c.flags.value() | e.resume(), bytes) || !st.push(c.seg[cs].selector, bytes) ||
        !st.push(c.rip, bytes) || (e.has_error && !st.push(e.error, bytes)))
        return false;
    st.commit_pointer();
    set_code_segment(c, code, c.cpl);
    return true;
}

bool enter_protected(Core &c, const Event &e) {
    std::uint64_t gate;
    if (e.vector * 8 + 7 > c.idtr.limit)
        return c.raise(exc_gp, e.gate_error());
    if (!load_system(c, c.idtr.base + e.vector * 8, gate))
        return false;
    const Segment g = unpack(0, gate);
    const unsigned type = (g.attr & Segment::kCodeOrData) ? 0 : g.type();
    const bool trap = type == sys_trap || type == sys_trap16;
    const bool is_gate = trap || type == sys_interrupt || type == sys_interrupt16 || type == sys_task_gate;
    if (!is_gate || (e.source == Source::software && g.dpl() < c.cpl))
        return c.raise(exc_gp, e.gate_error());
    if (!g.present())
        return c.raise(exc_np, e.gate_error());
    const auto selector = static_cast<std::uint16_t>(gate >> 16);
    if (type == sys_task_gate)
        return task_switch(c, selector, TaskSwitch::interrupt, c.rip, e.has_error ? &e.error : nullptr);

    const unsigned bytes = (type & 8) ? 4 : 2;
    const std::uint64_t target = (gate & 0xffff) | (bytes == 4 ? gate >> 48 << 16 : 0);
    Segment code;
    if (!read_code(c, selector, code))
        return false;
    const bool inner = !(code.attr & 4) && code.dpl() < c.cpl;
    if (c.virtual_8086() && (!inner || code.dpl() != 0))
        return c.raise(exc_gp, selector_error(selector));
    if (!check_target(c, code, target))
        return false;
    if (!(inner ? enter_inner(c, e, code, bytes) : enter_same(c, e, code, bytes)))
        return false;
    c.rip = target;
    clear_flags(c, !trap);
    return true;
}

bool enter(Core &c, const Event &e) {
    if (!c.protected_mode())
        return enter_real(c, e);
    return c.long_mode() ? enter_long(c, e) : enter_protected(c, e);
}

/// Faults that lead to #DF if one of them occurs while another is delivered.
bool contributory(unsigned vector) { return vector == exc_de || (vector >= exc_ts && vector <= exc_gp); }
bool double_fault(unsigned first, unsigned second) {
    if (first == exc_pf)
        return second == exc_pf || contributory(second);
    return contributory(first) && contributory(second);
}

/// What the processor turns off for the handler: general detect, and steps of control transfers alone.
void after_debug_exception(Core &c) {
    c.dr[7] &= ~std::uint64_t{1 << 13};
    if (RememberedMsr *control = find_msr(c, msr::debug_control))
        control->value &= ~msr::kBranchStep;
}

} // namespace

bool enter_handler(Core &c, unsigned vector, Source source, bool has_error, std::uint32_t error) {
    if (enter(c, {vector, source, has_error, error})) {
        if (vector == exc_db && source == Source::exception)
            after_debug_exception(c);
        return true;
    }
    // EXT: the event that could not be delivered was not the program's INT.
    const bool with_selector = c.fault.vector >= exc_ts && c.fault.vector <= exc_gp;
    if (source != Source::software && with_selector)
        c.fault.error |= 1;
    return false;
}

// If a fault occurs while another is delivered, and the two are no double fault, it is delivered in turn (AMD 24593,
// section 8.2.9). This may go on without end: if a handler at level 3 has a misaligned stack, the delivery of #AC
// raises #AC. A processor then hangs, out of reach of interrupts (CVE-2015-5307); here the core shuts down instead,
// which the run reports.
constexpr unsigned kInSeries = 64;

void deliver_fault(Core &c) {
    for (unsigned meeting = 0;; ++meeting) {
        const Fault f = c.fault;
        if (f.vector == exc_pf)
            c.cr2 = f.address;
        if (enter_handler(c, f.vector, Source::exception, f.has_error, f.error)) {
            ++c.extra_cycles; // so that the time of a program that does nothing but fault runs out
            return;
        }
        if (f.vector == exc_df || meeting == kInSeries) {
            c.exit = Exit::shutdown;
            return;
        }
        if (double_fault(f.vector, c.fault.vector)) {
            if (c.fault.vector == exc_pf)
                c.cr2 = c.fault.address;
            c.raise(exc_df, 0);
        }
    }
}

namespace {

/// Takes a pending event, and delivers the fault that this may cause.
void take(Core &c, unsigned vector, Source source) {
    c.halted = false;
    if (!enter_handler(c, vector, source, false, 0))
        deliver_fault(c);
}

void start_up(Core &c) {
    c.wait_for_sipi = c.halted = false;
    Segment &code = c.seg[cs];
    code.selector = static_cast<std::uint16_t>(c.signals.sipi_vector << 8);
    code.base = Addr{c.signals.sipi_vector} << 12;
    c.rip = 0;
    c.mode_changed();
}

} // namespace

bool interrupt_deliverable(const Core &c) {
    using S = dev::CoreSignals;
    const std::uint32_t p = c.signals.pending;
    if (p & (S::init | S::stop))
        return true;
    if (c.wait_for_sipi)
        return p & S::sipi;
    return ((p & S::nmi) && !c.nmi_blocked) || ((p & S::intr) && (c.flags.system & Flags::if_));
}

bool interrupts_need_poll(const Core &c) {
    using S = dev::CoreSignals;
    return (c.signals.pending & (S::smi | S::sipi)) || interrupt_deliverable(c);
}

bool poll_interrupts(Core &c) {
    using S = dev::CoreSignals;
    c.signals.lower(S::smi); // no system-management mode
    if (c.signals.pending & S::stop) {
        c.signals.lower(S::stop);
        c.exit = Exit::stop;
        return true;
    }
    if (c.signals.pending & S::init) {
        c.signals.lower(S::init);
        if (c.interrupts)
            c.interrupts->init_reset();
        reset(c, true);
        return true;
    }
    if (c.signals.pending & S::sipi) {
        c.signals.lower(S::sipi);
        if (c.wait_for_sipi) {
            start_up(c);
            return true;
        }
    }
    if (!interrupt_deliverable(c))
        return false;
    if (c.signals.pending & S::nmi && !c.nmi_blocked) {
        c.signals.lower(S::nmi);
        c.nmi_blocked = true;
        take(c, exc_nmi, Source::nmi);
        return true;
    }
    const int vector = c.interrupts ? c.interrupts->acknowledge() : -1;
    if (vector < 0) {
        c.signals.lower(S::intr);
        return false;
    }
    take(c, static_cast<unsigned>(vector), Source::external);
    return true;
}

} // namespace moscope::x86
