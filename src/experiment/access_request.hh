// SPDX-License-Identifier: BSD-3-Clause
// Checks the core and the address that a request names.
#pragma once

#include "machine/machine.hh"

namespace moscope {

class ConfigReader;

namespace experiment {

/// The value of "core"; UserError unless the machine has the core.
unsigned core_of(const Machine &machine, const ConfigReader &described);
/// Returns `a`; UserError unless the machine's memory has the `bytes` bytes from there.
Addr address_of(const Machine &machine, Addr a, std::uint64_t bytes);

} // namespace experiment

} // namespace moscope
