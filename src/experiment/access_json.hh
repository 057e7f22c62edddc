// SPDX-License-Identifier: BSD-3-Clause
// A finished access as JSON, and the names of the kinds of access in requests. Times in femtoseconds.
#pragma once

#include <string>

#include <nlohmann/json.hpp>

#include "machine/machine.hh"

namespace moscope::experiment {

using Json = nlohmann::ordered_json;

/// ld, st, if, rmw, flush, nt, ldu. UserError for anything else.
AccessKind kind_of(const std::string &op);
const char *op_of(AccessKind kind);
std::string hex(Addr a);

Json segments_json(const PathTimes &p);
/// Name of the type of controller that the protocol reports as the supplier; "own" if it reports none.
std::string supplier_name(unsigned type);
/// An access that is done.
Json access_json(const Machine &machine, const Access &a);

} // namespace moscope::experiment
