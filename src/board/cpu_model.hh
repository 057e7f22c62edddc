// SPDX-License-Identifier: BSD-3-Clause
// The processor model (cpu/x86/system/cpuid.hh) from the machine description's JSON:
//   {"description": "...", "max_basic": 5, "max_extended": 2147483674,
//    "leaves": [{"function": 1, "index": 0, "eax": .., "ebx": .., "ecx": .., "edx": ..}, ...],
//    "msrs": [{"number": .., "reset": .., "writable": ..}, ...]}
#pragma once

#include <string>

#include "cpu/x86/system/cpuid.hh"

namespace moscope {

class ConfigReader;

/// UserError naming the key that is missing or of the wrong type.
x86::CpuModel read_cpu_model(const ConfigReader &from);
x86::CpuModel parse_cpu_model(const std::string &json_text);

} // namespace moscope
