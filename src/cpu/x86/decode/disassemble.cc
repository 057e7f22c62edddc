// SPDX-License-Identifier: BSD-3-Clause
#include "cpu/x86/decode/disassemble.hh"

#include <Zydis/Zydis.h>

namespace moscope::x86 {

Disassembly disassemble(std::span<const std::uint8_t> bytes, Mode mode, Addr rip) {
    ZydisDecoder decoder;
    if (mode == Mode::code64)
        ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
    else if (mode == Mode::code32)
        ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LEGACY_32, ZYDIS_STACK_WIDTH_32);
    else
        ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LEGACY_16, ZYDIS_STACK_WIDTH_16);
    ZydisFormatter formatter;
    ZydisFormatterInit(&formatter, ZYDIS_FORMATTER_STYLE_INTEL);
    ZydisDecodedInstruction insn;
    ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];
    char text[128];
    if (bytes.empty() || !ZYAN_SUCCESS(ZydisDecoderDecodeFull(&decoder, bytes.data(), bytes.size(), &insn, operands)) ||
        !ZYAN_SUCCESS(ZydisFormatterFormatInstruction(&formatter, &insn, operands, insn.operand_count_visible, text,
                                                      sizeof text, rip, nullptr)))
        return {static_cast<unsigned>(bytes.size()), bytes.empty() ? "(not mapped)" : "(no instruction)"};
    return {insn.length, text};
}

} // namespace moscope::x86
