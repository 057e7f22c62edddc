// SPDX-License-Identifier: BSD-3-Clause
// One instruction as text, for messages and instruction traces.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "cpu/x86/state.hh"

namespace moscope::x86 {

struct Disassembly {
    unsigned length = 0; ///< bytes; all that were given if they are no instruction
    std::string text;
};

Disassembly disassemble(std::span<const std::uint8_t> bytes, Mode mode, Addr rip);

} // namespace moscope::x86
