// SPDX-License-Identifier: BSD-3-Clause
#include "board/otherwise.hh"

#include <algorithm>
#include <map>
#include <unordered_set>
#include <vector>

#include <nlohmann/json.hpp>

#include "board/checkpoint.hh"
#include "mem/guest_memory.hh"

namespace moscope {

namespace {

constexpr Addr kPage = WhatIf::kPageBytes;

/// Gives out lines and pages that the guest has not touched, by node, upwards from the middle of the node's memory.
class SpareLines {
  public:
    explicit SpareLines(Machine &machine) : machine_(machine), touched_(touched_pages(machine.guest_memory())) {}

    Addr next(unsigned node) {
        Addr &at = place(node);
        if (at % kPage == 0)
            skip_touched(node, at);
        const Addr line = at;
        at += kLineBytes;
        return line;
    }
    Addr next_page(unsigned node) {
        Addr &at = place(node);
        at = (at + kPage - 1) & ~(kPage - 1);
        skip_touched(node, at);
        const Addr page = at;
        at += kPage;
        return page;
    }

  private:
    Addr &place(unsigned node) {
        const Addr middle = (machine_.node_base(node) + machine_.node_bytes(node) / 2) & ~(kPage - 1);
        return next_.try_emplace(node, middle).first->second;
    }
    void skip_touched(unsigned node, Addr &at) const {
        const Addr end = machine_.node_base(node) + machine_.node_bytes(node);
        while (at < end && std::binary_search(touched_.begin(), touched_.end(), at / kPage))
            at += kPage;
        if (at >= end)
            throw UserError(
                "what-if: node " + std::to_string(node) +
                ": no memory is left that the guest has not touched: expected fewer lines, or more memory per node");
    }

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

WhatIf lines_otherwise(const nlohmann::json &lines, Machine &machine, const MappedPages &mapped) {
    SpareLines spare(machine);
    WhatIf all;
    std::unordered_set<Addr> decided;
    const auto move = [&](Addr page, unsigned node) {
        if (decided.insert(page).second && home_of(machine, page) != node)
            all.add_page(page, spare.next_page(node));
    };
    for (const auto &from : lines) {
        if (from.contains("page")) {
            move(from["page"].get<Addr>() & ~(kPage - 1), from.at("node"));
            continue;
        }
        if (from.contains("first")) {
            for (const Addr page : mapped(from.at("address_space"), from["first"], from.at("end")))
                move(page, from.at("node"));
            continue;
        }
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
