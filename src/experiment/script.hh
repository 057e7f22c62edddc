// SPDX-License-Identifier: BSD-3-Clause
// The phase "script" of an experiment (experiment.hh): steps of accesses, accesses added at given ticks, messages that arrive
// later, and the machine's state at given ticks.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "experiment/paced_machine.hh"

namespace moscope {

class ConfigReader;

nlohmann::ordered_json run_script(PacedMachine &paced, const ConfigReader &phase);

} // namespace moscope
