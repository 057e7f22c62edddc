// SPDX-License-Identifier: BSD-3-Clause
// Reads parts of a machine's elaborated description (moscope.machine/1). An error in it is a UserError.
#pragma once

#include "machine/machine.hh"
#include "mem/ruby/runtime/sequencer.hh"
#include "schema/config_reader.hh"

namespace moscope {

ruby::CacheGeometry geometry(const ConfigReader &, const std::string &name);
ruby::MachineType machine_type(const ConfigReader &value);
/// The sequencer's parameters from a controller's description; the defaults where it has none.
ruby::Sequencer::Params read_sequencer(const ConfigReader &controller);
x86::TimedParams read_pipeline(const ConfigReader &machine);

} // namespace moscope
