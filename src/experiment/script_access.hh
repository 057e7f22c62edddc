// SPDX-License-Identifier: BSD-3-Clause
// One access of a script, and its data.
#pragma once

#include <array>
#include <cstddef>
#include <optional>

#include "machine/machine.hh"

namespace moscope {

class Script;

struct ScriptAccess {
    Access access;
    Script *script = nullptr;
    unsigned number = 0, step = 0;
    int in_delays = 0;                    ///< its number for message_delays.hh
    std::optional<unsigned> core, device; ///< one of them
    Tick at = 0;                          ///< after the beginning of its step
    bool sized = false;                   ///< the script gives the size
    bool added = false;                   ///< from "added", not from a step
    bool issued = false, skipped = false;
    std::uint64_t value = 0; ///< written or found, where values are not checked
    alignas(8) std::array<std::byte, kLineBytes> bytes{};

    bool writes() const {
        return access.kind == AccessKind::store || access.kind == AccessKind::nt_store ||
               access.kind == AccessKind::rmw;
    }
};

} // namespace moscope
