// SPDX-License-Identifier: BSD-3-Clause
// Code for the simulated core in assembly language.
#pragma once

#include <cstdint>
#include <span>

namespace moscope::x86::test {

using Bytes = std::span<const std::uint8_t>;

// The machine code of an instruction sequence, assembled with this file.
#define CODE(text)                                                                                                     \
    [] {                                                                                                               \
        const std::uint8_t *begin, *end;                                                                               \
        asm(".pushsection .rodata\n.intel_syntax noprefix\n771: " text "\n772:\n.att_syntax prefix\n.popsection\n"     \
            "lea 771b(%%rip), %0\nlea 772b(%%rip), %1"                                                                 \
            : "=r"(begin), "=r"(end));                                                                                 \
        return Bytes(begin, end);                                                                                      \
    }()

} // namespace moscope::x86::test
