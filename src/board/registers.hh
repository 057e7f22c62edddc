// SPDX-License-Identifier: BSD-3-Clause
// A core's registers and the instruction it stands at, for people who look at a guest that died.
#pragma once

#include <string>

#include "cpu/x86/core.hh"

namespace moscope {

/// Several lines: general, segment and control registers, and the instruction.
std::string describe_registers(const x86::Core &);
/// One line: address, bytes and text of the instruction at the core's rip.
std::string describe_instruction(const x86::Core &);

} // namespace moscope
