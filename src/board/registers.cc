// SPDX-License-Identifier: BSD-3-Clause
#include "board/registers.hh"

#include <cstdarg>
#include <cstdio>
#include <vector>

#include "cpu/x86/decode/disassemble.hh"
#include "cpu/x86/mmu/paging.hh"

namespace moscope {

namespace {

__attribute__((format(printf, 1, 2))) std::string format(const char *f, ...) {
    char text[256];
    va_list args;
    va_start(args, f);
    std::vsnprintf(text, sizeof text, f, args);
    va_end(args);
    return text;
}

using U = unsigned long long;

} // namespace

std::string describe_instruction(const x86::Core &c) {
    const Addr base = c.code64() ? 0 : c.seg[x86::cs].base;
    std::vector<std::uint8_t> bytes;
    for (unsigned i = 0; i < 15; ++i) {
        PhysAddr p;
        if (!x86::peek_translation(c, base + c.rip + i, p) || !c.phys.host(p))
            break;
        bytes.push_back(static_cast<std::uint8_t>(*c.phys.host(p)));
    }
    const x86::Disassembly d = x86::disassemble(bytes, c.mode(), c.rip);
    std::string hex;
    for (unsigned i = 0; i < d.length; ++i)
        hex += format("%02x ", bytes[i]);
    return format("core %u, %04x:%016llx: ", c.number, c.seg[x86::cs].selector, static_cast<U>(c.rip)) + hex + " " +
           d.text;
}

std::string describe_registers(const x86::Core &c) {
    static const char *const names[16] = {"rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi",
                                          "r8 ", "r9 ", "r10", "r11", "r12", "r13", "r14", "r15"};
    static const char *const segments[x86::kSegs] = {"es", "cs", "ss", "ds", "fs", "gs"};
    std::string out = describe_instruction(c) + "\n";
    for (unsigned i = 0; i < 16; ++i)
        out += format("%s %016llx%s", names[i], static_cast<U>(c.r[i]), i % 4 == 3 ? "\n" : "  ");
    out += format("rflags %08llx  cpl %u  cr0 %08llx  cr2 %016llx  cr3 %012llx  cr4 %05llx  efer %04llx\n",
                  static_cast<U>(c.flags.value()), c.cpl, static_cast<U>(c.cr0), static_cast<U>(c.cr2),
                  static_cast<U>(c.cr3), static_cast<U>(c.cr4), static_cast<U>(c.efer));
    for (unsigned i = 0; i < x86::kSegs; ++i)
        out += format("%s %04x base %016llx limit %08x attr %04x\n", segments[i], c.seg[i].selector,
                      static_cast<U>(c.seg[i].base), c.seg[i].limit, c.seg[i].attr);
    out += format("gdtr %016llx+%04x  idtr %016llx+%04x  tr %04x base %016llx  ldtr %04x\n",
                  static_cast<U>(c.gdtr.base), c.gdtr.limit, static_cast<U>(c.idtr.base), c.idtr.limit, c.tr.selector,
                  static_cast<U>(c.tr.base), c.ldtr.selector);
    if (c.exit == x86::Exit::shutdown || c.exit == x86::Exit::fault)
        out += format("last fault: vector %u, error code %x, address %016llx\n", c.fault.vector, c.fault.error,
                      static_cast<U>(c.fault.address));
    return out;
}

} // namespace moscope
