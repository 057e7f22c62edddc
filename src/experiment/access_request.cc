// SPDX-License-Identifier: BSD-3-Clause
#include "experiment/access_request.hh"

#include "base/error.hh"
#include "experiment/access_json.hh"
#include "schema/config_reader.hh"

namespace moscope::experiment {

unsigned core_of(const Machine &machine, const ConfigReader &described) {
    return described.at("core", "a core's number").integer(0u, machine.cores() - 1);
}

Addr address_of(const Machine &machine, Addr a, std::uint64_t bytes) {
    if (a >= machine.memory_bytes() || bytes > machine.memory_bytes() - a)
        throw UserError("experiment: address " + hex(a) + " is outside memory: expected one below " +
                        hex(machine.memory_bytes()));
    return a;
}

} // namespace moscope::experiment
