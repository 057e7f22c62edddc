// SPDX-License-Identifier: BSD-3-Clause
// The statistics of a machine as a JSON value (docs/statistics.md). Nothing in it depends on how far cores ran
// ahead of the event queue.
#include <nlohmann/json.hpp>

#include "machine/machine_impl.hh"
#include "schema/config_reader.hh"

namespace moscope {

using nlohmann::ordered_json;
using namespace ruby;

namespace {

ordered_json segments(const PathTimes &p) {
    ordered_json j;
    for (unsigned i = 0; i < kSegments; ++i)
        j[kSegmentNames[i]] = p.in[i];
    return j;
}

} // namespace

ordered_json Machine::stats() const {
    ordered_json j;
    j["schema"] = "moscope.stats/1";
    j["machine"] = impl_->name;
    j["protocol"] = impl_->protocol->name;
    j["tick"] = impl_->processes.now();
    for (unsigned c = 0; c < cores(); ++c) {
        const Sequencer &s = *impl_->sequencers[c];
        j["cores"].push_back({{"inline_hits", const_cast<Sequencer &>(s).port().inline_hits},
                              {"accesses", s.finished},
                              {"latency_fs", s.latency_sum},
                              {"segments_fs", segments(s.path_sum)}});
        if (const auto *p = s.prefetcher(AccessKind::load))
            j["cores"].back()["prefetch"] = counters_json<ordered_json>(p->stats);
        if (const auto *p = s.prefetcher(AccessKind::fetch))
            j["cores"].back()["instruction_prefetch"] = counters_json<ordered_json>(p->stats);
    }
    std::size_t base = 0;
    for (const auto *c : impl_->controllers) {
        ordered_json t = ordered_json::object();
        for (unsigned i = 0; i < c->info->transitions; ++i) {
            const auto &x = c->info->transition[i];
            const std::uint64_t before = impl_->count_base.empty() ? 0 : impl_->count_base[base + i];
            const std::uint64_t n = c->transition_counts()[i] - before;
            if (n)
                t[std::string(c->info->state[x.state].name) + "." + c->info->event[x.event]] = n;
        }
        base += c->info->transitions;
        j["controllers"].push_back({{"name", c->name()}, {"transitions", std::move(t)}});
    }
    const NetworkStats n = impl_->network->stats();
    ordered_json links = ordered_json::array();
    for (const auto &l : n.link) {
        ordered_json channels = ordered_json::object();
        for (std::size_t i = 0; i < l.channel.size(); ++i)
            channels[n.channel_names[i]] = counters_json<ordered_json>(l.channel[i]);
        links.push_back({{"name", l.name}, {"from", l.from}, {"to", l.to}, {"channels", std::move(channels)}});
    }
    ordered_json channels = ordered_json::object();
    for (std::size_t i = 0; i < n.channel.size(); ++i) {
        const auto &x = n.channel[i];
        channels[n.channel_names[i]] = {{"sent", x.sent},
                                        {"delivered", x.delivered},
                                        {"delivered_by_hops", x.delivered_by_hops},
                                        {"latency_fs", x.latency},
                                        {"queueing_fs", x.queueing}};
    }
    ordered_json ports = ordered_json::array();
    for (const auto &p : n.port)
        ports.push_back(
            {{"name", p.name}, {"messages", p.messages}, {"bytes", p.bytes}, {"busy_fs", p.busy}, {"wait_fs", p.wait}});
    j["network"] = {{"kind", n.kind}, {"channels", channels}, {"links", links}, {"ports", ports}};
    ordered_json memory = ordered_json::array();
    std::size_t nth = 0;
    for (const auto &node : impl_->dram) {
        node->controller->sync(impl_->processes.now());
        ordered_json channels_of = ordered_json::array();
        for (unsigned c = 0; c < node->controller->channels(); ++c, ++nth)
            channels_of.push_back(counters_json<ordered_json>(
                dram::counted_between(nth < impl_->dram_base.size() ? impl_->dram_base[nth] : dram::ChannelStats{},
                                      node->controller->stats(c))));
        memory.push_back({{"name", node->controller->name()}, {"channels", std::move(channels_of)}});
        if (node->prefetcher)
            memory.back()["prefetch"] = counters_json<ordered_json>(node->prefetcher->stats);
    }
    j["dram"] = std::move(memory);
    return j;
}

void Machine::reset_stats() {
    impl_->count_base.clear();
    for (const auto *c : impl_->controllers)
        impl_->count_base.insert(impl_->count_base.end(), c->transition_counts(),
                                 c->transition_counts() + c->info->transitions);
    for (auto &s : impl_->sequencers) {
        s->finished = 0;
        s->latency_sum = 0;
        s->path_sum = {};
        s->port().inline_hits = 0;
        for (const AccessKind kind : {AccessKind::load, AccessKind::fetch})
            if (L1Prefetcher *const p = s->prefetcher(kind))
                p->stats = {};
    }
    impl_->network->reset_stats(impl_->processes.now());
    impl_->dram_base.clear();
    for (auto &node : impl_->dram) {
        if (node->prefetcher)
            node->prefetcher->stats = {};
        node->controller->sync(impl_->processes.now());
        for (unsigned c = 0; c < node->controller->channels(); ++c)
            impl_->dram_base.push_back(node->controller->stats(c));
    }
}

} // namespace moscope
