// SPDX-License-Identifier: BSD-3-Clause
#include "cpu/x86/system/cpuid.hh"

#include "cpu/x86/core.hh"

namespace moscope::x86 {

CpuidLeaf cpuid(const Core &c, std::uint32_t function, std::uint32_t index) {
    constexpr std::uint32_t apic = 1 << 9;
    const auto &leaves = c.model.leaves;
    auto found = leaves.find({function, index});
    if (found == leaves.end())
        found = leaves.find({function, 0}); // functions without sub-functions do not look at ECX
    if (found == leaves.end())
        return {};
    CpuidLeaf leaf = found->second;
    const bool apic_on = !c.interrupts || (c.interrupts->apic_base() >> 11 & 1);
    if (function == 1)
        leaf.ebx = (leaf.ebx & 0x00ffffff) | c.apic_id << 24;
    if ((function == 1 || function == 0x80000001) && !apic_on)
        leaf.edx &= ~apic;
    return leaf;
}

} // namespace moscope::x86
