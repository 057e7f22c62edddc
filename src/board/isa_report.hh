// SPDX-License-Identifier: BSD-3-Clause
// The table of instructions (cpu/x86/decode/isa.hh) as JSON text for the front end:
//   [{"mnemonic", "set", "feature", "group", "promised", "forms", "compared", "apart": [REASON..],
//     "lacking": [BYTES..]}, ...]
#pragma once

#include <string>

namespace moscope {

/// `cpu_json`: the processor model (cpu_model.hh).
std::string isa_report(const std::string &cpu_json);

} // namespace moscope
