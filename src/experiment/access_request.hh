// SPDX-License-Identifier: BSD-3-Clause
// The core and the address that a request names.
#pragma once

#include "machine/machine.hh"

namespace moscope {

class ConfigReader;

namespace experiment {

/// UserError unless the machine has the core.
unsigned core_of(const Machine &machine, const ConfigReader &described);
/// `a`; UserError unless the machine has that memory.
Addr address_of(const Machine &machine, Addr a, std::uint64_t bytes);

} // namespace experiment

} // namespace moscope
