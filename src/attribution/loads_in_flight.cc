// SPDX-License-Identifier: BSD-3-Clause
#include "attribution/loads_in_flight.hh"

#include <map>

namespace moscope {

LoadsInFlight::LoadsInFlight(std::vector<unsigned> chip_of_core)
    : chip_of_core_(std::move(chip_of_core)),
      cores_(chip_of_core_.size()),
      of_(chip_of_core_.empty() ? 0 : *std::ranges::max_element(chip_of_core_) + 1) {}

void LoadsInFlight::OfChip::begin(Entry &place, const Entry &what) {
    place = what;
    if (2 * ++count_ <= entries_.size())
        return;
    std::vector<Entry> old(2 * entries_.size());
    old.swap(entries_);
    count_ = 0;
    for (const Entry &e : old)
        settle(e);
}

void LoadsInFlight::reset() {
    for (OfChip &chip : of_)
        chip = {};
    for (OfCore &core : cores_)
        while (core.size)
            entry(core.take(), core.covered);
}

std::string LoadsInFlight::packed() const {
    std::map<std::pair<Addr, Addr>, LoadRow> rows;
    const auto add = [&rows](const Entry &e) {
        LoadRow &row = rows[{e.address_space, e.pc}];
        row.pc = e.pc;
        row.address_space = e.address_space;
        row.loads += e.loads;
        row.latency += e.latency;
        row.occupied += e.occupied;
    };
    for (const OfChip &chip : of_)
        chip.for_each(add);
    for (const OfCore &core : cores_) {
        Tick covered = core.covered;
        for (unsigned n = 0; n < core.size; ++n)
            add(entry(core.at(n), covered));
    }
    std::string out;
    for (const auto &[key, row] : rows)
        out.append(reinterpret_cast<const char *>(&row), sizeof row);
    return out;
}

} // namespace moscope
