// SPDX-License-Identifier: BSD-3-Clause
// What an instruction in user mode sees and changes of a processor, in the same form for the host and for the
// model: general registers, RFLAGS, and x87, MMX and SSE state as FXSAVE writes it (AMD 24593, section 11.5).
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

namespace moscope::x86::native {

// Where code and data lie, in the host's address space and in the guest's: no power of two apart, so that bit strings
// do not lead from one to the other.
inline constexpr std::uint64_t kCode = 0x1340'0000; ///< two pages, after them nothing
inline constexpr std::uint64_t kCodeBytes = 0x2000;
inline constexpr std::uint64_t kData = 0x2000'0000; ///< two pages, a read-only one, then nothing
inline constexpr std::uint64_t kDataBytes = 0x2000;
inline constexpr std::uint64_t kReadOnly = kData + kDataBytes;
inline constexpr std::uint64_t kMiddle = kData + 0x1000;
inline constexpr std::uint64_t kGsBase = 0x1234'5000;

/// Segments of data (DS and ES) and of the stack, and for 16-bit code the base of CS, so that 16-bit addresses reach
/// the pages.
struct Layout {
    std::uint64_t base;
    std::uint32_t limit;
    bool big;         ///< the stack pointer is ESP
    bool expand_down; ///< offsets beyond the limit are the valid ones
};
inline constexpr std::uint64_t kBase16 = kData - 0x4000;
inline constexpr std::uint32_t kMiddle16 = static_cast<std::uint32_t>(kMiddle - kBase16);
inline constexpr Layout kLayouts[] = {
    {0, 0xffffffff, true, false}, // of 64-bit and 32-bit code
    {kBase16, 0xffff, false, false},
    {kBase16, 0xffff, true, false},
    {kBase16, 0xffffffff, false, false}, // operands may reach over 64 KiB
    {kBase16, kMiddle16 + 99, false, false},
    {kBase16, kMiddle16 - 100, false, true},
};
inline constexpr std::uint64_t code_base(unsigned layout) { return layout ? kCode : 0; }

/// The parts of the data pages that a case fills; all of it is compared.
struct Window {
    std::uint64_t at, bytes;
};
inline constexpr Window kWindows[] = {{kData, 64}, {kMiddle - 768, 1536}, {kReadOnly - 64, 64}};

/// The legacy region of FXSAVE, 64-bit form.
struct alignas(16) Fx {
    std::uint16_t control, status;
    std::uint8_t valid, reserved;
    std::uint16_t opcode;
    std::uint64_t instruction, operand;
    std::uint32_t mxcsr, mxcsr_mask;
    struct {
        std::uint64_t significand;
        std::uint16_t sign_exponent, pad[3];
    } st[8];
    std::uint64_t xmm[16][2];
    std::uint64_t rest[12];
};
static_assert(sizeof(Fx) == 512);

struct alignas(16) Snapshot {
    std::uint64_t r[16];
    std::uint64_t flags;
    std::uint64_t rip;
    Fx fx;
};

/// How an instruction ended: vector -1 is completion.
struct Outcome {
    int vector = -1;
    std::uint32_t error = 0;
    std::uint64_t address = 0; ///< of a page fault
    bool lacking = false;      ///< the model does not have it
};

inline bool has_error(int vector) { return vector == 8 || (vector >= 10 && vector <= 14) || vector == 17; }

using Bytes = std::vector<std::uint8_t>;

/// INT3 in place of the longest instruction at `at`; for a branch, wherever it may go.
inline void put_int3(std::uint8_t *code_pages, std::uint64_t at, bool branch) {
    const std::uint64_t offset = branch ? 0 : at - kCode, room = kCodeBytes - offset;
    // Little otherwise, because writes to what has just run are slow.
    std::memset(code_pages + offset, 0xcc, branch || room < 32 ? room : 32);
}

/// How many bytes of code at `at` lie in the code pages.
inline std::size_t mapped(const Bytes &code, std::uint64_t at) {
    const std::uint64_t room = kCode + kCodeBytes - at;
    return code.size() < room ? code.size() : static_cast<std::size_t>(room);
}

} // namespace moscope::x86::native
