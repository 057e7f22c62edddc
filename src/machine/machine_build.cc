// SPDX-License-Identifier: BSD-3-Clause
// From the elaborated machine (moscope.machine/1) to objects. The Python side has checked the description;
// what is checked here is that it and the protocol's library fit together.
#include <dlfcn.h>

#include <bit>

#include <nlohmann/json.hpp>

#include "cpu/x86/timed/l1_tlb.hh"
#include "cpu/x86/timed/store_buffer.hh"
#include "machine/machine_impl.hh"

namespace moscope {

using nlohmann::json;
using namespace ruby;

namespace {

const json &need(const json &j, const char *key, const std::string &where) {
    const auto i = j.find(key);
    if (i == j.end())
        throw UserError(where + ": key \"" + key + "\" is missing: expected an elaborated machine");
    return *i;
}

template <class T> T get_or(const json &j, const char *key, T otherwise) {
    const auto i = j.find(key);
    return i == j.end() || i->is_null() ? otherwise : i->get<T>();
}

Replacement replacement(const std::string &name, const std::string &where) {
    if (name == "lru")
        return Replacement::lru;
    if (name == "tree_plru")
        return Replacement::tree_plru;
    if (name == "fifo")
        return Replacement::fifo;
    if (name == "random")
        return Replacement::random;
    throw UserError(where + ".replacement: \"" + name + "\": expected one of lru, tree_plru, fifo, random");
}

CacheGeometry geometry(const json &j, const std::string &name) {
    CacheGeometry g;
    g.name = name;
    g.sets = need(j, "sets", name).get<unsigned>();
    g.ways = need(j, "ways", name).get<unsigned>();
    g.replacement = replacement(get_or<std::string>(j, "replacement", "lru"), name);
    g.start_index_bit = get_or<unsigned>(j, "start_index_bit", kLineBits);
    g.tag_latency = get_or<int>(j, "tag_latency", 1);
    g.data_latency = get_or<int>(j, "data_latency", 1);
    return g;
}

RubyRequestType request_type(const char *key, const std::string &name) {
    for (int t = 0; t < RubyRequestType_NUM; ++t)
        if (name == RubyRequestType_to_string(static_cast<RubyRequestType>(t)))
            return static_cast<RubyRequestType>(t);
    throw UserError(std::string("sequencer.") + key + ": \"" + name + "\": expected a value of RubyRequestType");
}

bool is_probe(const char *vnet_type) {
    const std::string_view t = vnet_type;
    return t == "probe" || t == "forward";
}

} // namespace

Machine::Impl::~Impl() {
    // Controllers come from the library: they go first.
    lockstep.reset();
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

namespace {

x86::TimedParams read_pipeline(const json &j) {
    x86::TimedParams p;
    p.outstanding_misses = get_or<unsigned>(j, "outstanding_misses", 1);
    if (const auto at = j.find("pipeline"); at != j.end()) {
        p.width = get_or<unsigned>(*at, "issue_width", p.width);
        p.locked_cycles = get_or<unsigned>(*at, "locked_cycles", p.locked_cycles);
        p.store_buffer = get_or<unsigned>(*at, "store_buffer", p.store_buffer);
        p.l1_tlb = get_or<unsigned>(*at, "l1d_tlb", p.l1_tlb);
        p.l2_tlb_cycles = get_or<unsigned>(*at, "l2_tlb_cycles", p.l2_tlb_cycles);
        p.interrupt_latency = get_or<Tick>(*at, "interrupt_fs", p.interrupt_latency);
    }
    if (p.width == 0 || p.store_buffer == 0 || p.store_buffer > x86::StoreBuffer::kMost || p.l1_tlb == 0 ||
        p.l1_tlb > x86::L1Tlb::kMost)
        throw UserError("machine: pipeline: expected widths of at least 1, buffers and TLBs of 1 to 256 entries");
    return p;
}

} // namespace

void Machine::Impl::build(Machine &machine, const json &j, const std::string &library_path) {
    name = need(j, "name", "machine").get<std::string>();
    cores_per_chip = get_or<unsigned>(j, "cores_per_chip", 1);
    pipeline = read_pipeline(j);
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
    separate_chips(j);
    foresight.resize(queues.size());
    history.assign(queues.size(),
                   History(protocol->checks_data ? 1u << 14 : 1u << 10)); // small ones stay in the host's caches

    Addr end = 0;
    for (const auto &r : need(j, "address_map", "machine")) {
        const auto base = r.at("base").get<Addr>();
        const auto bytes = r.at("bytes").get<std::uint64_t>();
        addresses.ranges.push_back({base, bytes, r.at("node").get<unsigned>()});
        end = std::max(end, base + bytes);
    }
    if (addresses.ranges.empty())
        throw UserError("machine: address_map is empty: expected at least one node with memory");
    const std::uint64_t first = addresses.ranges[0].bytes;
    bool uniform = std::has_single_bit(first);
    for (std::size_t i = 0; i < addresses.ranges.size(); ++i)
        uniform = uniform && addresses.ranges[i].base == i * first && addresses.ranges[i].bytes == first &&
                  addresses.ranges[i].node == i;
    if (uniform)
        addresses.uniform_shift = static_cast<unsigned>(std::countr_zero(first));
    memory = std::make_unique<GuestMemory>(end);

    build_controllers(j);
    make_current();
    build_memory(j);
    connect(j);
    for (auto *c : controllers)
        c->init();
    watchdog = std::make_unique<Watchdog>(queue, machine, options.watchdog);
    if (chips_apart())
        go_in_step();
}

/// A queue for each chip, where that was asked for and chips reach each other by links alone.
void Machine::Impl::separate_chips(const json &j) {
    queues = {&queue};
    if (options.threads == 0)
        return;
    NetworkParams &params = network_params;
    params = NetworkParams::from_json(need(j, "network", "machine"));
    params.validate();
    window = std::min({params.window(), options.window_at_most, pipeline.interrupt_latency});
    std::string lacks;
    if (params.kind == NetworkParams::Kind::ideal)
        lacks = "a network without links has no time in which chips are alone";
    else if (params.jitter > 0)
        lacks = "random delays (network.jitter_fs) are drawn in one order for the whole machine";
    else if (params.routers > 1 && window < kTicksPerNs)
        lacks =
            "a link or an interrupt of this machine reaches another chip, or a buffer is given back, in less than 1 ns";
    for (const PortParams &port : params.ports)
        for (const auto &c : need(j, "controllers", "machine"))
            if (c.at("machine") == port.machine && c.at("version") == port.version &&
                get_or<unsigned>(c, "chip", 0) != port.router)
                lacks = port.machine + " " + std::to_string(port.version) + " is at another chip's crossbar";
    if (!lacks.empty()) {
        if (options.threads_if_possible)
            return;
        throw UserError("threads: " + lacks + ": expected one thread");
    }
    for (unsigned chip = 1; chip < params.routers; ++chip) {
        other_queues.push_back(std::make_unique<EventQueue>());
        queues.push_back(other_queues.back().get());
    }
}

void Machine::Impl::go_in_step() {
    const unsigned threads = std::min({options.threads, static_cast<unsigned>(queues.size()), MessagePool::kThreads});
    for (unsigned t = 1; t < threads; ++t)
        pools.push_back(std::make_unique<MessagePool>(t));
    lockstep = std::make_unique<Lockstep>(queues, window, threads,
                                          [this](unsigned thread) { this_threads_pool = pools[thread - 1].get(); });
}

void Machine::Impl::build_controllers(const json &j) {
    const json &list = need(j, "controllers", "machine");
    const json &clocks = need(j, "clocks", "machine");
    std::vector<json> of_type[MachineType_NUM];
    for (const auto &c : list) {
        const auto type = need(c, "machine", "controllers").get<std::string>();
        const MachineInfo *info = nullptr;
        for (unsigned i = 0; i < protocol->machines; ++i)
            if (type == protocol->machine[i].name)
                info = &protocol->machine[i];
        if (!info)
            throw UserError("controllers: machine \"" + type + "\": the protocol " + protocol->name + " has none");
        of_type[info->type].push_back(c);
    }
    const auto cores = need(j, "cores", "machine").get<unsigned>();
    sequencers.resize(cores);
    requestors.resize(cores);
    chip_of_core.resize(cores);
    if (list.size() > kMaxNodes)
        throw UserError("controllers: " + std::to_string(list.size()) + ": expected at most " +
                        std::to_string(kMaxNodes));

    for (unsigned m = 0; m < protocol->machines; ++m) {
        const MachineInfo &info = protocol->machine[m];
        auto &group = of_type[info.type];
        nodes.base[info.type] = static_cast<NodeIndex>(nodes.total);
        nodes.count[info.type] = static_cast<NodeIndex>(group.size());
        for (unsigned v = 0; v < group.size(); ++v) {
            const json *found = nullptr;
            for (const auto &c : group)
                if (c.at("version").get<unsigned>() == v)
                    found = &c;
            if (!found)
                throw UserError(std::string("controllers: ") + info.name + " " + std::to_string(v) +
                                " is missing: expected versions that count from 0");
            const json &c = *found;
            const auto clock_name = need(c, "clock", "controllers").get<std::string>();
            const json &k = need(clocks, clock_name.c_str(), "clocks");
            const Clock clock{k.at("period_num").get<std::int64_t>(), k.at("period_den").get<std::int64_t>()};
            const std::string full = std::string(info.name) + "-" + std::to_string(v);
            const auto chip = get_or<std::uint16_t>(c, "chip", 0);
            if (chips_apart() && chip >= queues.size())
                throw UserError(full + ": chip " + std::to_string(chip) + ": the network has " +
                                std::to_string(queues.size()) + " routers");
            const std::size_t place = chip % queues.size();
            EventQueue &own = *queues[place];
            owned_controllers.emplace_back(info.create(own, full, clock));
            AbstractController &ctrl = *owned_controllers.back();
            controllers.push_back(&ctrl);
            ctrl.node = static_cast<NodeIndex>(nodes.total);
            nodes.id[nodes.total++] = {info.type, static_cast<NodeID>(v)};
            ctrl.machineID = {info.type, static_cast<NodeID>(v)};
            ctrl.version = static_cast<NodeID>(v);
            ctrl.chip = chip;
            ctrl.core = get_or<std::uint16_t>(c, "core", 0xffff);
            ctrl.clusterID = get_or<NodeID>(c, "cluster", 0);
            ctrl.history = &history[place];
            ctrl.requestors = &requestors;
            ctrl.foresight = &foresight[place];
            ctrl.guest_memory = memory->base();
            ctrl.checks_data = protocol->checks_data;
            ctrl.transitions_per_cycle = get_or<int>(c, "transitions_per_cycle", 32);
            ctrl.work_segment = info.type == MachineType_Directory ? Segment::probe_filter : Segment::cache;

            const json values = get_or<json>(c, "params", json::object());
            const std::size_t first_cache = caches.size();
            for (const auto &[key, value] : values.items()) {
                bool known;
                if (value.is_object()) {
                    caches.push_back(std::make_unique<CacheMemory>(geometry(value, full + "." + key), own,
                                                                   options.seed * 1000003 + caches.size()));
                    known = ctrl.set_cache(key, caches.back().get());
                    ctrl.stores.arrays.push_back(caches.back().get());
                } else {
                    known = ctrl.set_value(key, value.is_boolean() ? value.get<bool>() : value.get<std::int64_t>());
                }
                if (!known)
                    throw UserError(full + ": parameter \"" + key + "\": the protocol " + protocol->name +
                                    " has no such parameter of this kind");
            }
            MessageBuffer *mandatory = nullptr;
            for (auto &b : ctrl.buffers()) {
                b.buffer->consumer = b.direction == 'T' ? nullptr : &ctrl;
                if (std::string_view(b.name) == "mandatoryQueue")
                    mandatory = b.buffer;
            }
            const json s = get_or<json>(c, "sequencer", json::object());
            if (mandatory && ctrl.core < cores && ctrl.set_sequencer("", nullptr)) {
                Sequencer::Params p;
                p.hit_latency = get_or<int>(s, "hit_cycles", 3);
                p.nt_store_type = request_type("nt_store_type", get_or<std::string>(s, "nt_store_type", "ST"));
                p.uncached_load_type =
                    request_type("uncached_load_type", get_or<std::string>(s, "uncached_load_type", "NULL"));
                sequencers[ctrl.core] =
                    std::make_unique<Sequencer>(p, ctrl, *mandatory, memory->base(), protocol->checks_data);
                ctrl.sequencer_ = requestors[ctrl.core] = sequencers[ctrl.core].get();
                ctrl.set_sequencer("", ctrl.sequencer_);
                chip_of_core[ctrl.core] = ctrl.chip;
                Port &port = ctrl.sequencer_->port();
                port.controller_ = &ctrl;
                port.core_clock_ = clock;
                port.hit_cycles_ = static_cast<unsigned>(p.hit_latency);
                // A transition may move a line other than its own from one array to another.
                for (std::size_t i = first_cache; i < caches.size(); ++i) {
                    caches[i]->on_remove = [](void *to, Addr line) { static_cast<Port *>(to)->forget(line); };
                    caches[i]->on_remove_context = &port;
                }
            }
            if (mandatory && ctrl.set_dma_sequencer("", nullptr)) {
                dma.push_back(std::make_unique<DMASequencer>(ctrl, *mandatory, memory->base(), protocol->checks_data));
                ctrl.set_dma_sequencer("", dma.back().get());
            }
        }
    }
    for (unsigned c = 0; c < cores; ++c)
        if (!sequencers[c])
            throw UserError("controllers: core " + std::to_string(c) + " has no controller with a sequencer");
}

void Machine::Impl::build_memory(const json &j) {
    const json &parameters = need(j, "dram", "machine");
    for (auto *c : controllers) {
        MessageBuffer *to = nullptr, *from = nullptr;
        for (auto &b : c->buffers()) {
            if (std::string_view(b.name) == "requestToMemory")
                to = b.buffer;
            if (std::string_view(b.name) == "responseFromMemory")
                from = b.buffer;
        }
        const auto v = static_cast<std::size_t>(c->version);
        if (v < addresses.ranges.size()) {
            directories.push_back(
                std::make_unique<DirectoryMemory>(addresses.ranges[v].base, addresses.ranges[v].bytes));
            if (!c->set_directory("", directories.back().get()))
                directories.pop_back();
        }
        if (!to || !from)
            continue;
        dram.push_back(std::make_unique<NodeDram>());
        NodeDram &d = *dram.back();
        d.controller = std::make_unique<dram::DramController>(queue_of(c->chip), "dram-" + std::to_string(c->version),
                                                              dram::DramParams::from_json(parameters));
        bridges.push_back(
            std::make_unique<MemoryBridge<NodeDram>>(queue_of(c->chip), "memory-" + std::to_string(c->version), d,
                                                     c->machineID, *to, *from, memory->base(), protocol->checks_data));
        d.bridge = bridges.back().get();
        d.controller->set_done([](void *owner, const dram::DramRequest &r,
                                  Tick when) { static_cast<NodeDram *>(owner)->bridge->done(r.context, when); },
                               &d);
        d.controller->set_space(
            [](void *owner, Tick now) { static_cast<NodeDram *>(owner)->bridge->schedule_no_later_than(now); }, &d);
        from->wait_segment = Segment::home_queue;
        c->memory_responses = from;
    }
}

void Machine::Impl::connect(const json &j) {
    NetworkParams &params = network_params;
    params = NetworkParams::from_json(need(j, "network", "machine"));
    params.seed = options.seed;
    params.validate();
    std::vector<ControllerName> names;
    for (auto *c : controllers)
        names.push_back({MachineType_to_string(c->machineID.type), c->version});
    network = make_network(queues, params, names);
    for (auto *c : controllers)
        for (auto &b : c->buffers()) {
            if (b.direction == '-')
                continue;
            if (b.vnet < 0 || b.vnet >= static_cast<int>(kMaxVnets))
                throw UserError(std::string(protocol->name) + ": buffer " + b.name +
                                ": its virtual network is missing or too large");
            b.buffer->vnet = static_cast<std::uint8_t>(b.vnet);
            b.buffer->ordered = b.ordered;
            if (b.direction == 'T') {
                b.buffer->ingress = network->ingress(c->node);
                network->attach_to(c->node, static_cast<unsigned>(b.vnet), b.buffer);
            } else {
                network->attach_from(c->node, static_cast<unsigned>(b.vnet), b.buffer);
                if (c->machineID.type == MachineType_Directory)
                    b.buffer->wait_segment = Segment::home_queue;
                else if (is_probe(b.vnet_type))
                    b.buffer->work_segment = Segment::responder;
            }
        }
    network->open_direct_ways(controllers);
    if (!options.zero_horizon)
        for (auto &s : sequencers)
            set_horizon(s->port(), s->controller());
}

/// What a core may count on that runs ahead: what acts on its hits without having been asked for is sent by controllers that
/// have a buffer into a virtual network from which its own reads such things, and not faster than they ever do.
void Machine::Impl::set_horizon(Port &port, AbstractController &c) {
    port.lookahead_ = network->min_delivery_latency(c.node);
    bool unasked[kMaxVnets] = {};
    for (auto &b : c.buffers())
        if (b.direction == 'F')
            unasked[b.vnet] |= b.unasked;
    for (unsigned v = 0; v < kMaxVnets; ++v)
        port.unasked_vnets_ |= unasked[v] ? 1u << v : 0;
    port.routed_ = network->routed_vnets(c.node);
    std::vector<std::pair<AbstractController *, Tick>> senders;
    for (auto *from : controllers) {
        Tick way = kNever;
        for (auto &b : from->buffers())
            if (b.direction == 'T' && unasked[b.vnet]) {
                const Clock &clock = from->clock().clock();
                // From a waking to the edge so many cycles later, which may be rounded down by a tick.
                const Tick sending = std::min(b.shortest, std::int64_t{1} << 20) * clock.num / clock.den - 1;
                way = std::min(way, std::max(sending, Tick{0}) + network->min_path_latency(from->node, c.node));
            }
        if (way != kNever)
            senders.emplace_back(from, way);
    }
    // The nearest is the relay. This holds while all such messages go directly: one in a router is nearer than its sender.
    const auto nearest =
        std::min_element(senders.begin(), senders.end(), [](auto &a, auto &b) { return a.second < b.second; });
    if (nearest == senders.end() || !c.crossing)
        return;
    port.unasked_ = network->min_delivery_latency(nearest->first->node) + nearest->second;
    for (auto i = senders.begin(); i != senders.end(); ++i)
        if (i != nearest)
            port.unasked_ = std::min(port.unasked_, i->second);
    // The first one in a router is sent in a window that has begun when a core counts on there being none.
    if (chips_apart())
        port.from_outside_ = std::min(port.unasked_, network_params.shortest_hop() - window + port.lookahead_);
    port.relay_ = nearest->first;
    port.relay_way_ = nearest->second;
}

} // namespace moscope
