// SPDX-License-Identifier: BSD-3-Clause
#include "experiment/access_json.hh"

#include <array>
#include <cstdio>

namespace moscope::experiment {

namespace {
constexpr std::array<const char *, kAccessKinds> kOps = {"ld", "st", "if", "rmw", "flush", "nt", "ldu"};
} // namespace

AccessKind kind_of(const std::string &op) {
    for (unsigned i = 0; i < kAccessKinds; ++i)
        if (op == kOps[i])
            return static_cast<AccessKind>(i);
    throw UserError("experiment: no access called " + op + ": expected ld, st, if, rmw, flush, nt or ldu");
}

const char *op_of(AccessKind kind) { return kOps[static_cast<unsigned>(kind)]; }

std::string hex(Addr a) {
    char text[24];
    std::snprintf(text, sizeof text, "0x%llx", static_cast<unsigned long long>(a));
    return text;
}

Json segments_json(const PathTimes &p) {
    Json j = Json::array();
    for (unsigned i = 0; i < kSegments; ++i)
        if (p.in[i])
            j.push_back({{"name", kSegmentNames[i]}, {"fs", p.in[i]}});
    return j;
}

std::string supplier_name(unsigned type) {
    // Controllers of the type need not exist: a protocol may name, for example, an L2 inside the core's controller.
    if (type == ruby::MachineType_NULL || type >= ruby::MachineType_NUM)
        return "own";
    return ruby::MachineType_to_string(static_cast<ruby::MachineType>(type));
}

Json access_json(const Machine &machine, const Access &a) {
    Json number, chip, state;
    if (a.supplier_chip != Access::kUnknown16)
        chip = a.supplier_chip;
    if (a.supplier_number != Access::kUnknown16) {
        number = a.supplier_number;
        for (unsigned m = 0; m < machine.protocol().machines; ++m)
            if (const ruby::MachineInfo &info = machine.protocol().machine[m];
                info.type == a.supplier && a.supplier_state < info.states)
                state = info.state[a.supplier_state].name;
    }
    return {{"op", op_of(a.kind)},
            {"address", hex(a.addr.value)},
            {"issued", a.issued},
            {"done", a.done},
            {"latency_fs", a.done - a.issued},
            {"segments", segments_json(a.path)},
            {"hops", a.hops},
            {"supplier", supplier_name(a.supplier)},
            {"supplier_number", number},
            {"supplier_chip", chip},
            {"supplier_state", state},
            {"probes", a.probes}};
}

} // namespace moscope::experiment
