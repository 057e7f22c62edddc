// SPDX-License-Identifier: BSD-3-Clause
// The processor that the guest sees, as data from the machine description: what each CPUID function returns, the
// clock of the time-stamp counter, and model-specific registers with fixed reset values.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>

namespace moscope::x86 {

struct CpuidLeaf {
    std::uint32_t eax = 0, ebx = 0, ecx = 0, edx = 0;
};

struct CpuModel {
    std::map<std::pair<std::uint32_t, std::uint32_t>, CpuidLeaf> leaves; ///< (function, index)
    std::uint32_t max_basic = 5, max_extended = 0x8000001a;
    /// Reset values of model-specific registers that only have to be remembered.
    std::map<std::uint32_t, std::uint64_t> msrs;
    std::string description;
};

} // namespace moscope::x86
