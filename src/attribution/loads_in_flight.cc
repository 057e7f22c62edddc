// SPDX-License-Identifier: BSD-3-Clause
#include "attribution/loads_in_flight.hh"

#include <map>
#include <utility>

namespace moscope {

std::string LoadsInFlight::packed() const {
    std::map<std::pair<Addr, Addr>, LoadRow> rows;
    for (const OfCore &core : of_)
        for (const auto &[instruction, sums] : core.of) {
            LoadRow &row = rows[{instruction.address_space, instruction.pc}];
            row.pc = instruction.pc;
            row.address_space = instruction.address_space;
            row.loads += sums.loads;
            row.latency += sums.latency;
            row.occupied += sums.occupied;
        }
    std::string out;
    for (const auto &[key, row] : rows)
        out.append(reinterpret_cast<const char *>(&row), sizeof row);
    return out;
}

} // namespace moscope
