// SPDX-License-Identifier: BSD-3-Clause
// The lines of a what-if run (mem/what_if.hh) from JSON: a list of
//
//     {"line": DRAM address, "free": true}
//     {"line": DRAM address, "groups": [number, one for each byte], "node": where their lines are homed; -1: where they are now}
//     {"page": DRAM address, "node": where its lines are homed}
//     {"first": virtual address, "end": virtual address, "address_space": CR3, "node": home of the pages mapped there}
//
// If a page is named twice, the first entry counts. The lines and pages that the protocol sees instead lie in pages
// that the guest has not touched so far. If the guest uses such a page later, the two share cache lines but no bytes.
#pragma once

#include <functional>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "machine/machine.hh"

namespace moscope {

/// The DRAM pages that are mapped at [first, end) of an address space.
using MappedPages = std::function<std::vector<Addr>(Addr cr3, Addr first, Addr end)>;

/// UserError if a line is not the machine's, or if a node has no room.
WhatIf lines_otherwise(const nlohmann::json &lines, Machine &machine, const MappedPages &mapped);

} // namespace moscope
