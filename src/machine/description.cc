// SPDX-License-Identifier: BSD-3-Clause
#include "machine/description.hh"

#include "machine/machine_impl.hh"

namespace moscope {

using namespace ruby;

namespace {

/// Leaves `out` as it is where the key is missing.
void read_request_type(const ConfigReader &sequencer, const char *key, RubyRequestType &out) {
    if (!sequencer.has(key))
        return;
    const ConfigReader value = sequencer.at(key);
    const auto name = value.as<std::string>();
    for (int t = 0; t < RubyRequestType_NUM; ++t)
        if (name == RubyRequestType_to_string(static_cast<RubyRequestType>(t))) {
            out = static_cast<RubyRequestType>(t);
            return;
        }
    value.refuse("\"" + name + "\" is unknown", "a value of RubyRequestType");
}

} // namespace

CacheGeometry geometry(const ConfigReader &from, const std::string &name) {
    CacheGeometry g;
    g.name = name;
    g.sets = from.get<unsigned>("sets");
    g.ways = from.get<unsigned>("ways");
    from.read("replacement", g.replacement);
    from.read("start_index_bit", g.start_index_bit);
    from.read("tag_latency", g.tag_latency);
    from.read("data_latency", g.data_latency);
    return g;
}

MachineType machine_type(const ConfigReader &value) {
    const auto name = value.as<std::string>();
    for (int t = 0; t < MachineType_NULL; ++t)
        if (name == MachineType_to_string(static_cast<MachineType>(t)))
            return static_cast<MachineType>(t);
    value.refuse("\"" + name + "\" is unknown", "a MachineType");
}

Sequencer::Params read_sequencer(const ConfigReader &controller) {
    Sequencer::Params p;
    if (controller.has("sequencer")) {
        const ConfigReader from = controller.at("sequencer");
        from.read("hit_cycles", p.hit_latency);
        read_request_type(from, "nt_store_type", p.nt_store_type);
        read_request_type(from, "uncached_load_type", p.uncached_load_type);
        from.read("flushes", p.flushes);
    }
    return p;
}

x86::TimedParams read_pipeline(const ConfigReader &machine) {
    x86::TimedParams p;
    p.outstanding_misses = machine.get_or("outstanding_misses", 1u);
    if (machine.has("pipeline"))
        static_cast<x86::PipelineParams &>(p) = read_group<x86::PipelineParams>(machine.at("pipeline"));
    if (machine.has("core"))
        p.core = read_group<x86::CoreParams>(machine.at("core"));
    return p;
}

} // namespace moscope
