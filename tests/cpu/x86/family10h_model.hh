// SPDX-License-Identifier: BSD-3-Clause
// A processor model for tests: what an Opteron of family 10h promises of instructions, and nothing else.
#pragma once

#include "cpu/x86/system/cpuid.hh"

namespace moscope::x86::test {

inline CpuModel family10h_model() {
    CpuModel m;
    m.leaves[{1, 0}] = {0x00100f80, 0x00060800, 0x00802009, 0x178bfbff};
    m.leaves[{0x80000001, 0}] = {0x00100f80, 0, 0x000023fb, 0x2fd3fbff};
    return m;
}

} // namespace moscope::x86::test
