// SPDX-License-Identifier: BSD-3-Clause
// The processor that the guest sees (AMD 25481), as data from the machine description: the result of each CPUID
// function, and the model-specific registers that only hold the value written to them.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>

namespace moscope::x86 {

struct Core;

struct CpuidLeaf {
    std::uint32_t eax = 0, ebx = 0, ecx = 0, edx = 0;
};

/// A model-specific register without an effect in the model.
struct MsrModel {
    std::uint64_t reset = 0;
    std::uint64_t writable = ~std::uint64_t{0}; ///< bits that a write changes; 0: a write raises #GP
};

struct CpuModel {
    std::map<std::pair<std::uint32_t, std::uint32_t>, CpuidLeaf> leaves; ///< (function, index)
    std::uint32_t max_basic = 5, max_extended = 0x8000001a;
    std::map<std::uint32_t, MsrModel> msrs; ///< by number; those with effects are in msr.cc
    std::string description;
};

/// What CPUID returns on this core: the model's answer with the core's APIC identifier in it.
CpuidLeaf cpuid(const Core &, std::uint32_t function, std::uint32_t index);

} // namespace moscope::x86
