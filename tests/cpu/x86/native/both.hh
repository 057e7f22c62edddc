// SPDX-License-Identifier: BSD-3-Clause
// One case on the host and on the model, and what differs.
#pragma once

#include <cstdlib>

#include "cpu/x86/native/amd_host.hh"
#include "cpu/x86/native/cases.hh"
#include "cpu/x86/native/compare.hh"
#include "cpu/x86/native/host_cpu.hh"
#include "cpu/x86/native/model_cpu.hh"

namespace moscope::x86::native {

/// The model has a function for it.
inline bool modelled(const NativeForm &f) {
    Insn insn;
    insn.z = f.z;
    std::copy(std::begin(f.op), std::end(f.op), insn.op);
    insn.mode = f.mode;
    Op op;
    fill_operands(insn, op);
    return lower(insn, op) != nullptr;
}

inline std::uint64_t number(const char *variable, std::uint64_t otherwise) {
    const char *text = std::getenv(variable);
    return text ? std::strtoull(text, nullptr, 0) : otherwise;
}

inline std::uint64_t seed_of(const std::string &name, std::uint64_t n) {
    std::uint64_t h = number("MOSCOPE_NATIVE_SEED", 1);
    for (char c : name)
        h = (h ^ static_cast<unsigned char>(c)) * 0x100000001b3;
    return h * 0x9e3779b97f4a7c15 + n;
}

/// A locked access across lines, which is not for the host (CaseMaker::choose_target says why).
inline bool splits_lock(const NativeForm &f, const Case &c) {
    if (!f.locks())
        return false;
    for (unsigned i = 0; i < f.visible(); ++i) {
        if (f.op[i].type != ZYDIS_OPERAND_TYPE_MEMORY)
            continue;
        const std::uint64_t a = operand_offset(f.z, f.op[i], c) + segment_base(f.op[i], c);
        const std::uint64_t bytes = f.op[i].size / 8;
        if (a % 64 + bytes > 64 || (f.is_bit_string() && a % bytes))
            return true;
    }
    return false;
}

/// Empty: they agree, or a random address is in other memory of the process, where the model has no page. The case was
/// made in the data pages of the host.
inline std::string run_both(HostCpu &host, ModelCpu &model, const NativeForm &f, const Case &c, bool &host_lacks) {
    for (const Window &w : kWindows)
        std::memcpy(model.data() + (w.at - kData), HostCpu::memory(w.at), w.bytes);
    Snapshot native, modelled;
    const Outcome expected = host.run(f.mode, c.code, c.at, f.stops, c.in, native, c.layout);
    Outcome got = model.run(c.code, c.at, c.in, modelled, f.mode, c.layout, f.stops);
    if (got.vector == exc_pf && expected.vector != exc_pf && HostCpu::has_other_memory(got.address)) {
        std::memcpy(model.data(), HostCpu::memory(kData), kDataBytes);
        return {};
    }
    host_lacks = expected.vector == exc_ud && got.vector != exc_ud;
    ignore_undefined(f, c, expected.vector, native, modelled, HostCpu::memory(kData), model.data());
    if (HostCpu::is_amd())
        AmdHost(f, c, model, expected, got, native, modelled).make_equal();
    const std::string difference =
        differences(f.mode, c, expected, native, got, modelled, HostCpu::memory(kData), model.data());
    if (!difference.empty())
        std::memcpy(model.data(), HostCpu::memory(kData), kDataBytes);
    return difference;
}

} // namespace moscope::x86::native
