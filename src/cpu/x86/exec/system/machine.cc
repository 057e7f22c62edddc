// SPDX-License-Identifier: BSD-3-Clause
// The machine as instructions see it: CPUID, model-specific registers, the time-stamp and performance counters, HLT,
// PAUSE, MONITOR and MWAIT, SWAPGS (AMD 24594, chapters 3 and 4).
#include "cpu/x86/decode/lower.hh"
#include "cpu/x86/exec/integer/string_operands.hh"
#include "cpu/x86/mmu/memory.hh"
#include "cpu/x86/system/control.hh"
#include "cpu/x86/system/cpuid.hh"
#include "cpu/x86/system/monitor.hh"
#include "cpu/x86/system/msr.hh"

namespace moscope::x86 {
namespace {

void set_pair(Core &c, std::uint64_t v) {
    c.r[rax] = v & 0xffffffff;
    c.r[rdx] = v >> 32;
}

const Op *identify(Core &c, const Op *op) {
    const CpuidLeaf leaf = cpuid(c, static_cast<std::uint32_t>(c.r[rax]), static_cast<std::uint32_t>(c.r[rcx]));
    c.r[rax] = leaf.eax;
    c.r[rbx] = leaf.ebx;
    c.r[rcx] = leaf.ecx;
    c.r[rdx] = leaf.edx;
    return op + 1;
}

const Op *read_model_specific(Core &c, const Op *op) {
    std::uint64_t v;
    if (!privileged(c) || !read_msr(c, static_cast<std::uint32_t>(c.r[rcx]), v))
        return c.fault_at(op);
    set_pair(c, v);
    return op + 1;
}
const Op *write_model_specific(Core &c, const Op *op) {
    const std::uint64_t v = (c.r[rax] & 0xffffffff) | c.r[rdx] << 32;
    if (!privileged(c) || !write_msr(c, static_cast<std::uint32_t>(c.r[rcx]), v))
        return c.fault_at(op);
    return op + 1;
}

template <bool aux> const Op *read_time_stamp(Core &c, const Op *op) {
    if ((c.cr4 & cr4::tsd) && c.cpl != 0)
        return protection(c, op);
    set_pair(c, time_stamp(c));
    if (aux)
        c.r[rcx] = c.tsc_aux;
    return op + 1;
}

const Op *read_performance_counter(Core &c, const Op *op) {
    const auto n = static_cast<std::uint32_t>(c.r[rcx]);
    if ((!(c.cr4 & cr4::pce) && c.cpl != 0) || n > 3)
        return protection(c, op);
    const RememberedMsr *m = find_msr(c, msr::perf_ctr0 + n);
    set_pair(c, m ? m->value : 0);
    return op + 1;
}

const Op *halt(Core &c, const Op *op) {
    if (!privileged(c))
        return c.fault_at(op);
    c.halted = true;
    c.monitor.waiting = false; // of an MWAIT that an interrupt has ended
    return c.leave_after(op, Exit::halt);
}

// The same PAUSE again within this many instructions: an iteration of a loop that waits for another core.
constexpr std::uint64_t kSpinLoop = 24;

const Op *pause(Core &c, const Op *op) {
    ++c.pauses;
    if (const Addr at = c.address_of(op); at == c.spin_at && c.retired - c.spin_mark <= kSpinLoop)
        c.spun += c.retired - c.spin_mark;
    else
        c.spin_at = at;
    c.spin_mark = c.retired;
    return c.leave_after(op, Exit::pause);
}

const Op *monitor(Core &c, const Op *op) {
    if (c.cpl != 0)
        return undefined(c, op);
    if (static_cast<std::uint32_t>(c.r[rcx]))
        return protection(c, op);
    Addr a;
    std::uint8_t x;
    if (!string_address(c, op, rax, op->seg, 1, false, a) || !load(c, a, x))
        return c.fault_at(op);
    arm_monitor(c, a);
    return op + 1;
}
const Op *wait_for_monitor(Core &c, const Op *op) {
    if (c.cpl != 0)
        return undefined(c, op);
    const auto extensions = static_cast<std::uint32_t>(c.r[rcx]);
    if (extensions > 1)
        return protection(c, op);
    serialize(c); // lines that buffered stores fetch could replace the monitored line
    return c.leave_after(op, begin_monitor_wait(c, extensions & 1) ? Exit::halt : Exit::pause);
}

const Op *swap_gs(Core &c, const Op *op) {
    if (!c.code64())
        return undefined(c, op);
    if (!privileged(c))
        return c.fault_at(op);
    std::swap(c.seg[gs].base, c.kernel_gs_base);
    return op + 1;
}

Exec lower_monitor(const Insn &i, Op &op) {
    string_segments(i, op);
    return monitor;
}

const Form kForms[] = {
    {ZYDIS_MNEMONIC_CPUID, serializing<identify>, true},
    {ZYDIS_MNEMONIC_RDMSR, read_model_specific, true},
    {ZYDIS_MNEMONIC_WRMSR, serializing<write_model_specific>, true},
    {ZYDIS_MNEMONIC_RDTSC, read_time_stamp<false>, true},
    {ZYDIS_MNEMONIC_RDTSCP, read_time_stamp<true>, true},
    {ZYDIS_MNEMONIC_RDPMC, read_performance_counter, true},
    {ZYDIS_MNEMONIC_HLT, halt, true},
    {ZYDIS_MNEMONIC_PAUSE, pause, true},
    {ZYDIS_MNEMONIC_MONITOR, lower_monitor, true},
    {ZYDIS_MNEMONIC_MWAIT, wait_for_monitor, true},
    {ZYDIS_MNEMONIC_SWAPGS, swap_gs},
};
const Group kGroup("machine", kForms);

} // namespace
} // namespace moscope::x86
