// SPDX-License-Identifier: BSD-3-Clause
#include "cpu/x86/system/msr.hh"

#include <algorithm>
#include <bit>

#include "cpu/x86/mmu/paging.hh"
#include "cpu/x86/system/control.hh"
#include "cpu/x86/system/cpuid.hh"
#include "cpu/x86/timed/timed_core.hh"

namespace moscope::x86 {

std::uint64_t time_stamp(Core &c) {
    if (c.timed)
        c.timed->disturb(); // a loop that waits for a time is not the same in each iteration
    return c.platform.cycles(c) + static_cast<std::uint64_t>(c.tsc_offset);
}

RememberedMsr *find_msr(Core &c, std::uint32_t number) {
    const auto it = std::lower_bound(c.msrs.begin(), c.msrs.end(), number,
                                     [](const RememberedMsr &m, std::uint32_t n) { return m.number < n; });
    return it != c.msrs.end() && it->number == number ? &*it : nullptr;
}

namespace {

/// The field of the core that holds a register; null: there is none.
std::uint64_t *plain(Core &c, std::uint32_t number) {
    switch (number) {
    case msr::sysenter_cs: return &c.sysenter_cs;
    case msr::sysenter_esp: return &c.sysenter_esp;
    case msr::sysenter_eip: return &c.sysenter_eip;
    case msr::pat: return &c.pat;
    case msr::efer: return &c.efer;
    case msr::star: return &c.star;
    case msr::lstar: return &c.lstar;
    case msr::cstar: return &c.cstar;
    case msr::sfmask: return &c.sfmask;
    case msr::fs_base: return &c.seg[fs].base;
    case msr::gs_base: return &c.seg[gs].base;
    case msr::kernel_gs_base: return &c.kernel_gs_base;
    case msr::tsc_aux: return &c.tsc_aux;
    default: return nullptr;
    }
}

bool is_address(std::uint32_t number) {
    switch (number) {
    case msr::lstar:
    case msr::cstar:
    case msr::fs_base:
    case msr::gs_base:
    case msr::kernel_gs_base: return true;
    default: return false;
    }
}

bool memory_types(std::uint64_t pat) {
    for (unsigned i = 0; i < 64; i += 8)
        if (const std::uint64_t type = pat >> i & 0xff; type > 7 || type == 2 || type == 3)
            return false;
    return true;
}

bool unknown(Core &c, std::uint32_t number, bool write) {
    c.platform.unknown_msr(c, number, write);
    return c.raise(exc_gp, 0);
}

} // namespace

bool read_msr(Core &c, std::uint32_t number, std::uint64_t &value) {
    if (const std::uint64_t *field = plain(c, number)) {
        value = *field;
        return true;
    }
    if (number == msr::tsc) {
        value = time_stamp(c);
        return true;
    }
    if (number == msr::apic_base && c.interrupts) {
        value = c.interrupts->apic_base();
        return true;
    }
    if (c.platform.msr_read(c, number, value))
        return true;
    if (const RememberedMsr *m = find_msr(c, number)) {
        value = m->value;
        return true;
    }
    return unknown(c, number, false);
}

bool write_msr(Core &c, std::uint32_t number, std::uint64_t value) {
    if (number == msr::efer)
        return write_efer(c, value);
    if ((number == msr::pat && !memory_types(value)) || (is_address(number) && !canonical(value)))
        return c.raise(exc_gp, 0);
    if (std::uint64_t *field = plain(c, number)) {
        *field = number == msr::tsc_aux || number == msr::sfmask ? value & 0xffffffff : value;
        return true;
    }
    if (number == msr::tsc) {
        c.tsc_offset = static_cast<std::int64_t>(value - c.platform.cycles(c));
        return true;
    }
    if (number == msr::apic_base && c.interrupts) {
        if (!c.interrupts->set_apic_base(value))
            return c.raise(exc_gp, 0);
        c.flush_tlb(true); // translations depend on where the registers are
        return true;
    }
    if (c.platform.msr_write(c, number, value))
        return true;
    RememberedMsr *m = find_msr(c, number);
    const auto model = c.model.msrs.find(number);
    if (!m || model == c.model.msrs.end())
        return unknown(c, number, true);
    const std::uint64_t writable = model->second.writable;
    if (!writable)
        return c.raise(exc_gp, 0);
    m->value = (m->value & ~writable) | (value & writable);
    if (number == msr::pstate_control) // the change takes no time
        if (RememberedMsr *status = find_msr(c, msr::pstate_status))
            status->value = value & 7;
    return true;
}

namespace {

void set(Core &c, std::uint32_t number, std::uint64_t value) {
    if (RememberedMsr *m = find_msr(c, number))
        m->value = value;
}

/// All memory is write-back except the hole below 4 GiB, which variable-range MTRRs take out in naturally aligned
/// powers of two.
void firmware_memory_types(Core &c) {
    constexpr std::uint64_t address_bits = (std::uint64_t{1} << 48) - 1, valid = 1 << 11, enable = 0xc00,
                            write_back = 6;
    if (!find_msr(c, msr::mtrr_def_type))
        return;
    set(c, msr::mtrr_def_type, enable | write_back);
    std::uint32_t next = msr::mtrr_phys_base0;
    for (Addr a = c.phys.hole; a < PhysMap::kTop && find_msr(c, next);) {
        const std::uint64_t fits = std::bit_floor(PhysMap::kTop - a);
        const std::uint64_t size = std::min(fits, a ? a & -a : fits);
        set(c, next, a);
        set(c, next + 1, (address_bits & ~(size - 1)) | valid);
        next += 2;
        a += size;
    }
    for (std::uint32_t fixed : {0x250u, 0x258u, 0x268u, 0x269u, 0x26au, 0x26bu, 0x26cu, 0x26du, 0x26eu, 0x26fu})
        set(c, fixed, 0x0606060606060606);
}

} // namespace

void reset_msrs(Core &c) {
    c.msrs.clear();
    for (const auto &[number, model] : c.model.msrs)
        c.msrs.push_back({number, model.reset});
    set(c, msr::top_mem, std::min(c.phys.hole, c.phys.end()));
    if (c.phys.end() > PhysMap::kTop) {
        set(c, msr::top_mem2, c.phys.end());
        if (RememberedMsr *m = find_msr(c, msr::syscfg))
            m->value |= 3 << 21; // TOP_MEM2 counts, and what lies below it is write-back
    }
    firmware_memory_types(c);
}

} // namespace moscope::x86
