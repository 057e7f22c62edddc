// SPDX-License-Identifier: BSD-3-Clause
// The lines of a what-if run (mem/what_if.hh) from JSON: a list of
//
//     {"line": DRAM address, "free": true}
//     {"line": DRAM address, "groups": [number, one for each byte], "node": where their lines are homed; -1: where they are now}
//
// The lines that stand for groups lie in pages that the guest has not touched so far. Should it use such a page later, the two share
// cache lines and no bytes.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "machine/machine.hh"

namespace moscope {

/// UserError if a line is not the machine's, or if a node has no room.
WhatIf lines_otherwise(const nlohmann::json &lines, Machine &machine);

} // namespace moscope
