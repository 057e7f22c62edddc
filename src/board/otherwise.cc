// SPDX-License-Identifier: BSD-3-Clause
#include "board/otherwise.hh"

#include <algorithm>
#include <map>
#include <vector>

#include <nlohmann/json.hpp>

#include "board/checkpoint.hh"
#include "mem/guest_memory.hh"

namespace moscope {

namespace {

constexpr Addr kPage = 4096;

/// Gives out lines of untouched pages, by node, upwards from the middle of the node's memory.
class SpareLines {
  public:
    explicit SpareLines(Machine &machine) : machine_(machine), touched_(touched_pages(machine.guest_memory())) {}

    Addr next(unsigned node) {
        const Addr base = machine_.node_base(node), end = base + machine_.node_bytes(node);
        const auto begun = next_.try_emplace(node, (base + machine_.node_bytes(node) / 2) & ~(kPage - 1)).first;
        Addr &at = begun->second;
        while (at < end && at % kPage == 0 && std::binary_search(touched_.begin(), touched_.end(), at / kPage))
            at += kPage;
        if (at >= end)
            throw UserError(
                "what-if: node " + std::to_string(node) +
                ": no memory is left that the guest has not touched: expected fewer lines, or more memory per node");
        const Addr line = at;
        at += kLineBytes;
        return line;
    }

  private:
    Machine &machine_;
    std::vector<std::uint64_t> touched_; ///< sorted
    std::map<unsigned, Addr> next_;
};

unsigned home_of(const Machine &machine, Addr line) {
    for (unsigned node = 0; node < machine.nodes(); ++node)
        if (line - machine.node_base(node) < machine.node_bytes(node))
            return node;
    throw UserError("what-if: line " + std::to_string(line) + ": expected a line of the machine's memory");
}

} // namespace

WhatIf lines_otherwise(const nlohmann::json &lines, Machine &machine) {
    SpareLines spare(machine);
    WhatIf all;
    for (const auto &from : lines) {
        const Addr line = line_of(from.at("line").get<Addr>());
        const unsigned home = home_of(machine, line);
        WhatIf::Line how;
        how.free = from.value("free", false);
        if (!how.free) {
            how.group = from.at("groups").get<std::array<std::uint8_t, kLineBytes>>();
            const int node = from.value("node", -1);
            const unsigned groups = *std::max_element(how.group.begin(), how.group.end()) + 1U;
            for (unsigned g = 0; g < groups; ++g)
                how.lines.push_back(spare.next(node < 0 ? home : static_cast<unsigned>(node)));
        }
        all.add(line, std::move(how));
    }
    return all;
}

} // namespace moscope
