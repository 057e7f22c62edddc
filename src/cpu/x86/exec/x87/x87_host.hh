// SPDX-License-Identifier: BSD-3-Clause
// x87 instructions on the host's own unit (AMD 26569): the model loads the guest's whole x87 state, runs the same
// instruction, and stores the state. The host is x86-64, so its unit is the reference. Hardware reports an unmasked
// exception at the next waiting instruction; the model runs none on the host and reads the exception from the state.
#pragma once

#include <cstdint>

#include "cpu/x86/state.hh"

namespace moscope::x86::x87 {

/// Bytes D8-DF and ModRM of an instruction whose operands are registers or one memory operand.
struct Code {
    std::uint8_t opcode = 0; ///< 0-7 for D8-DF
    std::uint8_t modrm = 0;
    bool memory() const { return modrm < 0xc0; }
};

/// Runs it on `f`. `operand`: the memory operand, read or written, up to 10 bytes. `flags`: RFLAGS's arithmetic
/// flags, which FCMOV reads and FCOMI writes.
void run_on_host(X87 &f, Code code, void *operand, std::uint64_t &flags);

} // namespace moscope::x86::x87
