// SPDX-License-Identifier: BSD-3-Clause
// Builds a machine from its elaborated description (moscope.machine/1). The Python side has checked the description. Checked here:
// that the description and the protocol's library fit together.
#include <dlfcn.h>

#include <algorithm>
#include <bit>
#include <set>

#include <nlohmann/json.hpp>

#include "machine/description.hh"
#include "machine/machine_impl.hh"
#include "schema/config_reader.hh"

namespace moscope {

using nlohmann::json;
using namespace ruby;

namespace {

constexpr std::pair<const char *, Role> kRoles[] = {{"cache", Role::cache}, {"home", Role::home}, {"dma", Role::dma}};

bool is_probe(const char *vnet_type) {
    const std::string_view t = vnet_type;
    return t == "probe" || t == "forward";
}

} // namespace

Machine::Impl::~Impl() {
    // The controllers' code is in the library, so they are destroyed before it is closed.
    processes.end_threads();
    for (const auto &p : pools)
        the_message_pool.absorb(*p);
    owned_controllers.clear();
    if (library)
        dlclose(library);
    if (NodeMap::current == &nodes)
        NodeMap::current = nullptr;
    if (AddressMap::current == &addresses)
        AddressMap::current = nullptr;
}

void Machine::Impl::build(Machine &machine, const json &description, const std::string &library_path) {
    const ConfigReader from(description, "machine");
    name = from.get<std::string>("name");
    from.read("cores_per_chip", cores_per_chip);
    pipeline = read_pipeline(from);
    if (from.has("l1d_prefetch"))
        l1_prefetchers.emplace_back(read_group<L1dPrefetchParams>(from.at("l1d_prefetch")));
    if (from.has("l1i_prefetch"))
        l1_prefetchers.emplace_back(read_group<L1iPrefetchParams>(from.at("l1i_prefetch")));
    library = dlopen(library_path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        const char *why = dlerror();
        throw UserError(library_path + ": not a protocol library (" + (why ? why : "unknown") +
                        "): expected one built with `moscope protocol build`");
    }
    using Entry = const ProtocolInfo *(*)();
    auto entry = reinterpret_cast<Entry>(dlsym(library, "moscope_protocol"));
    if (!entry)
        throw UserError(library_path + ": not a protocol library: expected one built with `moscope protocol build`");
    protocol = entry();
    message_pool().restart_numbering();
    separate_chips(from);
    history.reserve(processes.size());
    while (history.size() < processes.size())
        history.emplace_back(protocol->checks_data ? 1u << 14 : 1u << 10); // small ones stay in the host's caches

    Addr end = 0;
    for (const ConfigReader &r : from.at("address_map", "a list of address ranges").list()) {
        const auto base = r.get<Addr>("base");
        const auto bytes = r.get<std::uint64_t>("bytes");
        addresses.ranges.push_back({base, bytes, r.get<unsigned>("node")});
        end = std::max(end, base + bytes);
    }
    if (addresses.ranges.empty())
        from.at("address_map").refuse("is empty", "at least one node with memory");
    const std::uint64_t first = addresses.ranges[0].bytes;
    bool uniform = std::has_single_bit(first);
    for (std::size_t i = 0; i < addresses.ranges.size(); ++i)
        uniform = uniform && addresses.ranges[i].base == i * first && addresses.ranges[i].bytes == first &&
                  addresses.ranges[i].node == i;
    if (uniform)
        addresses.uniform_shift = static_cast<unsigned>(std::countr_zero(first));
    memory = std::make_unique<GuestMemory>(end);

    build_controllers(from);
    make_current();
    build_memory(from);
    connect(from);
    for (auto *c : controllers)
        c->init();
    watchdog = std::make_unique<Watchdog>(processes.queue(0), machine, requestors, options.watchdog);
    start_threads();
}

/// Makes each chip a logical process, if threads are wanted and chips affect each other through links only.
void Machine::Impl::separate_chips(const ConfigReader &from) {
    if (options.threads == 0)
        return;
    NetworkParams &params = network_params;
    params = NetworkParams::from_json(from.at("network", "an object").value());
    lookahead = std::min({params.lookahead(), options.lookahead_at_most, pipeline.interrupt_fs});
    std::string lacks;
    if (params.kind == NetworkParams::Kind::ideal)
        lacks = "a network without links has no lookahead";
    else if (params.jitter > 0)
        lacks = "random delays (network.jitter_fs) are for random tests, which run on one thread";
    else if (params.routers > 1 && lookahead < kTicksPerNs)
        lacks = "a message, an interrupt or a buffer credit of this machine reaches another chip in less than 1 ns";
    for (const PortParams &port : params.ports)
        for (const ConfigReader &c : from.at("controllers", "a list").list())
            if (c.at("machine").value() == port.machine && c.at("version").value() == port.version &&
                c.get_or("chip", 0u) != port.router)
                lacks = port.machine + " " + std::to_string(port.version) + " is at another chip's crossbar";
    if (!lacks.empty()) {
        if (options.threads_if_possible)
            return;
        throw UserError("threads: " + lacks + ": expected no threads for this machine");
    }
    processes.divide(params.routers);
}

void Machine::Impl::start_threads() {
    const unsigned threads = std::min({options.threads, processes.size(), MessagePool::kThreads});
    for (unsigned t = 1; t < threads; ++t)
        pools.push_back(std::make_unique<MessagePool>(t));
    processes.start_threads(lookahead, threads,
                            [this](unsigned thread) { this_threads_pool = pools[thread - 1].get(); });
}

namespace {

/// The descriptions of controllers by machine type, in the order of their versions.
std::vector<std::vector<ConfigReader>> by_type_and_version(const std::vector<ConfigReader> &list,
                                                           const ProtocolInfo &protocol) {
    std::vector<std::vector<ConfigReader>> of_type(MachineType_NUM);
    for (const ConfigReader &c : list) {
        const auto type = c.get<std::string>("machine");
        const MachineInfo *info = nullptr;
        for (unsigned i = 0; i < protocol.machines; ++i)
            if (type == protocol.machine[i].name)
                info = &protocol.machine[i];
        if (!info)
            c.at("machine").refuse("\"" + type + "\" is unknown", std::string("a machine of ") + protocol.name);
        of_type[info->type].push_back(c);
    }
    for (unsigned i = 0; i < protocol.machines; ++i) {
        auto &group = of_type[protocol.machine[i].type];
        std::vector<ConfigReader> sorted;
        for (unsigned v = 0; v < group.size(); ++v) {
            const auto found =
                std::find_if(group.begin(), group.end(), [v](const auto &c) { return c.at("version").value() == v; });
            if (found == group.end())
                throw UserError(std::string("controllers: ") + protocol.machine[i].name + " " + std::to_string(v) +
                                " is missing: expected versions counted from 0");
            sorted.push_back(*found);
        }
        group = sorted;
    }
    return of_type;
}

Clock clock_of(const ConfigReader &controller, const ConfigReader &clocks) {
    const ConfigReader clock =
        clocks.at(controller.get<std::string>("clock"), "a clock with period_num and period_den");
    return {clock.get<std::int64_t>("period_num"), clock.get<std::int64_t>("period_den")};
}

} // namespace

void Machine::Impl::build_controllers(const ConfigReader &from) {
    const std::vector<ConfigReader> list = from.at("controllers", "a list").list();
    const ConfigReader clocks = from.at("clocks", "an object");
    const auto of_type = by_type_and_version(list, *protocol);
    const auto cores = from.get<unsigned>("cores");
    sequencers.resize(cores);
    requestors.resize(cores);
    chip_of_core.resize(cores);
    if (list.size() > kMaxNodes)
        from.at("controllers").refuse(std::to_string(list.size()) + " of them", "at most " + std::to_string(kMaxNodes));
    for (unsigned m = 0; m < protocol->machines; ++m) {
        const MachineInfo &info = protocol->machine[m];
        const auto &group = of_type[info.type];
        nodes.base[info.type] = static_cast<NodeIndex>(nodes.total);
        nodes.count[info.type] = static_cast<NodeIndex>(group.size());
        for (unsigned v = 0; v < group.size(); ++v)
            build_controller(info, v, group[v], clock_of(group[v], clocks));
    }
    for (std::size_t n = 0; n < controllers.size(); ++n) {
        const MachineID self = controllers[n]->machineID;
        const ConfigReader &c = of_type[self.type][static_cast<std::size_t>(self.num)];
        if (c.has("upstream"))
            for (const ConfigReader &u : c.at("upstream", "a list").list())
                controllers[n]->upstream.add_index(
                    nodes.index({machine_type(u.at("machine")), u.get<NodeID>("version")}));
    }
    for (unsigned c = 0; c < cores; ++c)
        if (!sequencers[c])
            throw UserError("controllers: core " + std::to_string(c) +
                            " has no sequencer: expected a controller with one");
}

void Machine::Impl::build_controller(const MachineInfo &info, unsigned version, const ConfigReader &from,
                                     const Clock &clock) {
    const std::string full = std::string(info.name) + "-" + std::to_string(version);
    const auto chip = from.get_or("chip", std::uint16_t{0});
    if (processes.size() > 1 && chip >= processes.size())
        throw UserError(full + ": chip " + std::to_string(chip) + ": expected a chip below " +
                        std::to_string(processes.size()) + ", the number of routers");
    const std::size_t process = chip % processes.size();
    owned_controllers.emplace_back(info.create(processes.queue(chip), full, clock));
    AbstractController &ctrl = *owned_controllers.back();
    controllers.push_back(&ctrl);
    ctrl.node = static_cast<NodeIndex>(nodes.total);
    nodes.id[nodes.total++] = {info.type, static_cast<NodeID>(version)};
    ctrl.machineID = {info.type, static_cast<NodeID>(version)};
    ctrl.version = static_cast<NodeID>(version);
    ctrl.chip = chip;
    ctrl.core = from.get_or("core", std::uint16_t{0xffff});
    ctrl.history = &history[process];
    ctrl.report_to(requestors);
    ctrl.guest_memory = memory->base();
    ctrl.checks_data = protocol->checks_data;
    ctrl.transitions_per_cycle = from.get_or("transitions_per_cycle", 32);
    ctrl.role = from.at("role", "cache, home or dma").one_of(kRoles);
    if (from.has("downstream"))
        ctrl.downstream = {machine_type(from.at("downstream").at("machine")),
                           from.at("downstream").get<NodeID>("version")};
    ctrl.work_segment = ctrl.role == Role::home ? Segment::probe_filter : Segment::cache;

    const std::size_t first_cache = caches.size();
    if (from.has("params"))
        set_parameters(ctrl, from.at("params"));
    MessageBuffer *mandatory = nullptr;
    for (auto &b : ctrl.buffers()) {
        b.buffer->consumer = b.direction == 'T' ? nullptr : &ctrl;
        b.buffer->work_segment = ctrl.work_segment;
        if (std::string_view(b.name) == "mandatoryQueue")
            mandatory = b.buffer;
    }
    if (mandatory && from.has("sequencers"))
        from.at("sequencers").each_key([&](const std::string &param, const ConfigReader &core) {
            add_sequencer(ctrl, *mandatory, from, clock, first_cache, param, core.as<std::uint16_t>());
        });
    else if (mandatory && ctrl.core < sequencers.size() && ctrl.set_sequencer("", nullptr))
        add_sequencer(ctrl, *mandatory, from, clock, first_cache, "", ctrl.core);
    if (mandatory && ctrl.set_dma_sequencer("", nullptr)) {
        dma.push_back(std::make_unique<DMASequencer>(ctrl, *mandatory, memory->base(), protocol->checks_data));
        ctrl.set_dma_sequencer("", dma.back().get());
    }
}

/// Parameters that the protocol declares for the machine: cache arrays, numbers and flags.
void Machine::Impl::set_parameters(AbstractController &ctrl, const ConfigReader &params) {
    params.each_key([&](const std::string &key, const ConfigReader &value) {
        bool known;
        if (value.value().is_object()) {
            caches.push_back(std::make_unique<CacheMemory>(geometry(value, ctrl.name() + "." + key), ctrl.queue(),
                                                           options.seed * 1000003 + caches.size()));
            known = ctrl.set_cache(key, caches.back().get());
        } else {
            known = ctrl.set_value(key, value.value().is_boolean() ? value.as<bool>() : value.as<std::int64_t>());
        }
        if (!known)
            value.refuse("unknown", std::string("a parameter that ") + protocol->name + " declares for " + ctrl.name());
    });
}

/// Builds a core's sequencer at its controller, and sets up the sequencer's port. The controller's caches begin at
/// `first_cache`. Where several cores share a controller, `param` names the sequencer's parameter.
void Machine::Impl::add_sequencer(AbstractController &ctrl, MessageBuffer &mandatory, const ConfigReader &controller,
                                  const Clock &clock, std::size_t first_cache, const std::string &param,
                                  std::uint16_t core) {
    if (core >= sequencers.size() || !ctrl.set_sequencer(param, nullptr))
        throw UserError(ctrl.name() + ": sequencer " + param + " of core " + std::to_string(core) +
                        ": expected a parameter of the machine, and a core that exists");
    Sequencer::Params p = read_sequencer(controller);
    p.core = core;
    sequencers[core] = std::make_unique<Sequencer>(p, ctrl, mandatory, memory->base(), protocol->checks_data);
    for (const L1Prefetcher::Params &one : l1_prefetchers)
        sequencers[core]->use_prefetcher(one);
    ctrl.sequencer_ = requestors[core] = sequencers[core].get();
    ctrl.set_sequencer(param, ctrl.sequencer_);
    chip_of_core[core] = ctrl.chip;
    Port &port = ctrl.sequencer_->port();
    port.controller_ = &ctrl;
    port.core_clock_ = clock;
    port.hit_cycles_ = static_cast<unsigned>(p.hit_latency);
    // Each array makes the port forget a line that leaves it: a transition may also move a line other than its own.
    for (std::size_t i = first_cache; i < caches.size(); ++i)
        caches[i]->port = &port;
}

void Machine::Impl::build_memory(const ConfigReader &from) {
    const json &parameters = from.at("dram", "an object").value();
    for (auto *c : controllers) {
        MessageBuffer *requests = nullptr, *responses = nullptr;
        for (auto &b : c->buffers()) {
            if (std::string_view(b.name) == "requestToMemory")
                requests = b.buffer;
            if (std::string_view(b.name) == "responseFromMemory")
                responses = b.buffer;
        }
        const auto v = static_cast<std::size_t>(c->version);
        if (v < addresses.ranges.size()) {
            directories.push_back(
                std::make_unique<DirectoryMemory>(addresses.ranges[v].base, addresses.ranges[v].bytes));
            if (!c->set_directory("", directories.back().get()))
                directories.pop_back();
        }
        if (!requests || !responses)
            continue;
        dram.push_back(std::make_unique<NodeDram>());
        NodeDram &d = *dram.back();
        d.controller = std::make_unique<dram::DramController>(
            processes.queue(c->chip), "dram-" + std::to_string(c->version), dram::DramParams::from_json(parameters));
        bridges.push_back(std::make_unique<MemoryBridge<NodeDram>>(
            processes.queue(c->chip), "memory-" + std::to_string(c->version), d, c->machineID, *requests, *responses,
            memory->base(), protocol->checks_data));
        d.bridge = bridges.back().get();
        d.controller->set_done([](void *owner, const dram::DramRequest &r,
                                  Tick when) { static_cast<NodeDram *>(owner)->done(r.context, when); },
                               &d);
        if (from.has("dram_prefetch"))
            d.prefetcher = std::make_unique<dram::DramPrefetcher>(
                read_group<DramPrefetchParams>(from.at("dram_prefetch")), *d.controller,
                [](void *owner, void *context, Tick when) {
                    static_cast<NodeDram *>(owner)->bridge->done(context, when);
                },
                &d);
        d.controller->set_space(
            [](void *owner, Tick now) { static_cast<NodeDram *>(owner)->bridge->schedule_no_later_than(now); }, &d);
        responses->wait_segment = Segment::home_queue;
        c->memory_responses = responses;
    }
}

/// Connects the buffers of one core's controllers that lead into each other without the network. Returns these buffers.
std::set<const MessageBuffer *> Machine::Impl::connect_directly(const ConfigReader &from) {
    std::set<const MessageBuffer *> wired;
    if (!from.has("wires"))
        return wired;
    const auto end = [&](const ConfigReader &r) -> std::pair<AbstractController *, MessageBuffer *> {
        for (auto *c : controllers)
            if (r.get<std::string>("machine") == MachineType_to_string(c->machineID.type) &&
                r.get<NodeID>("version") == c->version)
                for (auto &b : c->buffers())
                    if (r.get<std::string>("buffer") == b.name)
                        return {c, b.buffer};
        r.refuse("unknown", "a machine, its version, and one of its buffers");
    };
    for (const ConfigReader &wire : from.at("wires", "a list").list()) {
        const auto [sender, out] = end(wire.at("from"));
        const auto [receiver, in] = end(wire.at("to"));
        wires.push_back(std::make_unique<DirectWire>(sender->queue(), sender->name() + "." + out->name, *out, *in));
        wired.insert({out, in});
    }
    return wired;
}

void Machine::Impl::connect(const ConfigReader &from) {
    NetworkParams &params = network_params;
    params = NetworkParams::from_json(from.at("network", "an object").value());
    params.seed = options.seed;
    std::vector<ControllerName> names;
    for (auto *c : controllers)
        names.push_back({MachineType_to_string(c->machineID.type), c->version});
    network = make_network(processes.queues(), params, names);
    const std::set<const MessageBuffer *> wired = connect_directly(from);
    for (auto *c : controllers)
        for (auto &b : c->buffers()) {
            if (b.direction == '-' || wired.contains(b.buffer))
                continue;
            if (b.vnet < 0 || b.vnet >= static_cast<int>(kMaxVnets))
                throw UserError(
                    std::string(protocol->name) + ": buffer " + b.name +
                    ": its virtual network is missing or too large: expected a number, or a peer of the same name "
                    "(docs/slicc.md, Direct connections)");
            b.buffer->vnet = static_cast<std::uint8_t>(b.vnet);
            b.buffer->ordered = b.ordered;
            if (b.direction == 'T') {
                b.buffer->ingress = network->ingress(c->node);
                network->attach_to(c->node, static_cast<unsigned>(b.vnet), b.buffer);
            } else {
                network->attach_from(c->node, static_cast<unsigned>(b.vnet), b.buffer);
                if (c->role == Role::home)
                    b.buffer->wait_segment = Segment::home_queue;
                else if (is_probe(b.vnet_type))
                    b.buffer->work_segment = Segment::responder;
            }
        }
    network->open_direct_ways(controllers);
    if (!options.zero_lookahead)
        for (auto &s : sequencers)
            set_lookahead(s->port(), s->controller());
}

/// Sets the bounds of a core's lookahead. An unsolicited message to the core's controller comes from a controller with
/// a buffer into a virtual network that carries such messages. It takes at least that controller's least sending
/// latency and the path's.
void Machine::Impl::set_lookahead(Port &port, AbstractController &c) {
    for (auto &b : c.buffers())
        if (b.direction == 'F' && b.vnet < 0)
            return; // a neighbour can reach it directly at any time: there is no lookahead
    port.lookahead_ = network->min_delivery_latency(c.node);
    bool unsolicited[kMaxVnets] = {};
    for (auto &b : c.buffers())
        if (b.direction == 'F')
            unsolicited[b.vnet] |= b.unsolicited;
    for (unsigned v = 0; v < kMaxVnets; ++v)
        port.unsolicited_vnets_ |= unsolicited[v] ? 1u << v : 0;
    port.routed_ = network->routed_vnets(c.node);
    std::vector<std::pair<AbstractController *, Tick>> senders;
    for (auto *from : controllers) {
        Tick latency = kNever;
        for (auto &b : from->buffers())
            if (b.direction == 'T' && b.vnet >= 0 && unsolicited[b.vnet]) {
                const Clock &clock = from->clock().clock();
                // Time from a wake-up to the clock edge b.shortest cycles later; rounding may take a tick off.
                const Tick sending = std::min(b.shortest, std::int64_t{1} << 20) * clock.num / clock.den - 1;
                latency = std::min(latency, std::max(sending, Tick{0}) + network->min_path_latency(from->node, c.node));
            }
        if (latency != kNever)
            senders.emplace_back(from, latency);
    }
    // The nearest sender is the relay. The bound holds only while no router carries such a message, because a message
    // in a router is nearer than its sender.
    const auto nearest =
        std::min_element(senders.begin(), senders.end(), [](auto &a, auto &b) { return a.second < b.second; });
    if (nearest == senders.end() || !c.crossing)
        return;
    port.unsolicited_ = network->min_delivery_latency(nearest->first->node) + nearest->second;
    for (auto i = senders.begin(); i != senders.end(); ++i)
        if (i != nearest)
            port.unsolicited_ = std::min(port.unsolicited_, i->second);
    // Another process may send such a message into a router in an epoch in which this core relies on there being none.
    if (processes.size() > 1)
        port.from_outside_ = std::min(port.unsolicited_, network_params.shortest_hop() - lookahead + port.lookahead_);
    port.relay_ = nearest->first;
    port.relay_latency_ = nearest->second;
}

} // namespace moscope
