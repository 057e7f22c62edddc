// SPDX-License-Identifier: BSD-3-Clause
// The phases of an experiment: streams, scripts, hit loops.
#include "experiment/experiment.hh"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <deque>
#include <memory>
#include <optional>
#include <stdexcept>
#include <vector>

#include "schema/config_reader.hh"

#include "cpu/traffic/access_stream.hh"
#include "cpu/traffic/hit_loop.hh"
#include "experiment/trace_recorder.hh"
#include "experiment/transition_recorder.hh"
#include "mem/ruby/runtime/message_pool.hh"

namespace moscope {

namespace {

using Json = nlohmann::ordered_json;
using HostClock = std::chrono::steady_clock;

constexpr std::array<const char *, kAccessKinds> kOps = {"ld", "st", "if", "rmw", "flush", "nt", "ldu"};

AccessKind kind_of(const std::string &op) {
    for (unsigned i = 0; i < kAccessKinds; ++i)
        if (op == kOps[i])
            return static_cast<AccessKind>(i);
    throw UserError("experiment: no access called " + op + ": expected ld, st, if, rmw, flush, nt or ldu");
}

double seconds_since(HostClock::time_point start) {
    return std::chrono::duration<double>(HostClock::now() - start).count();
}

/// Processor time of this thread, so that what else runs on the host does not count.
double own_processor_seconds() {
    timespec t{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

std::string hex(Addr a) {
    char text[24];
    std::snprintf(text, sizeof text, "0x%llx", static_cast<unsigned long long>(a));
    return text;
}

/// One machine and where it stands in simulated time.
class Experiment {
  public:
    Experiment(const std::string &description, const std::string &library, const MachineOptions &options,
               const Poll &poll)
        : messages_at_rest_(ruby::the_message_pool.live()), machine_(description, library, options), poll_(poll) {}

    Json loads(const ConfigReader &phase);
    Json script(const ConfigReader &phase);
    Json hits(const ConfigReader &phase);

  private:
    static constexpr Tick kSlice = 1'000'000'000;   ///< 1 us: between two looks at the host's clock
    static constexpr Tick kStep = 10 * kTicksPerNs; ///< how finely the end of a script's step is looked for
    static constexpr Tick kSettle = 20'000 * kTicksPerNs;
    static constexpr Tick kLongest = 3'600'000'000'000'000; ///< 3.6 s of simulated time: something never ends

    struct Step;
    struct Streams;
    struct Cost;
    Streams make_streams(const ConfigReader &phase);
    void start(const Streams &streams, std::uint64_t accesses);
    void reset_counts(const Streams &streams);
    Cost count_window(const ConfigReader &phase, const Streams &streams);
    Cost count_accesses(const ConfigReader &phase, const Streams &streams, std::optional<TraceRecorder> &recorder);

    /// First edge of the cores' clock from which everything is in the future.
    Tick start_time() {
        const Clock c = machine_.port(0).core_clock_;
        now_ = std::max(now_, machine_.now());
        return now_ = c.edge(c.edge_at_or_after(now_ + 1));
    }
    void run_until(Tick t) {
        while (now_ < t) {
            now_ = std::min(t, now_ + kSlice);
            machine_.run(now_);
            poll();
        }
    }
    template <class Done> void run_while(Tick slice, Done &&not_done) {
        const Tick start = now_;
        while (not_done()) {
            now_ += slice;
            machine_.run(now_);
            poll();
            if (now_ - start > kLongest)
                throw ProtocolError("an experiment did not come to its end in 3.6 s of simulated time");
        }
    }
    /// By the clock where several threads work, as each waits for the others.
    double host_seconds() const {
        return machine_.processes().size() > 1
                   ? std::chrono::duration<double>(HostClock::now().time_since_epoch()).count()
                   : own_processor_seconds();
    }
    bool quiet() { return machine_.in_flight() == 0 && machine_.messages() == messages_at_rest_; }
    /// Until nothing is under way. What a protocol leaves lying about on purpose is given kSettle to go away.
    void settle() {
        const Tick start = now_;
        run_while(kStep, [&] { return machine_.in_flight() > 0 || (!quiet() && now_ - start < kSettle); });
    }
    void poll() {
        if (poll_ && seconds_since(polled_) > 0.05) {
            poll_();
            polled_ = HostClock::now();
        }
    }
    unsigned core_of(const ConfigReader &j) const {
        return j.at("core", "a core's number").integer(0u, machine_.cores() - 1);
    }
    Addr address_of(Addr a, std::uint64_t bytes) const {
        if (a >= machine_.memory_bytes() || bytes > machine_.memory_bytes() - a)
            throw UserError("experiment: address " + hex(a) + " is outside memory: expected one below " +
                            hex(machine_.memory_bytes()));
        return a;
    }
    LineSequence sequence(const ConfigReader &j) const;
    std::string supplier(unsigned type) const;
    Json counts(const StreamCounts &c) const;
    Json account(const Access &a) const;
    static Json segments(const PathTimes &p);

    std::int64_t messages_at_rest_;
    Machine machine_;
    const Poll &poll_;
    HostClock::time_point polled_ = HostClock::now();
    Tick now_ = 0;
    unsigned names_ = 0;
    // Components stay: the queue knows them by number.
    std::deque<AccessStream> streams_;
    std::deque<HitLoop> loops_;
    std::vector<std::unique_ptr<Component>> steps_;
};

LineSequence Experiment::sequence(const ConfigReader &j) const {
    std::vector<LineSequence::Range> ranges;
    for (const ConfigReader &r : j.at("ranges").list()) {
        const auto pair = r.as<std::vector<std::uint64_t>>();
        if (pair.size() != 2 || line_offset(pair[0]) || pair[1] < kLineBytes)
            r.refuse("is no range of whole lines", "[base, bytes]");
        const auto [base, bytes] = std::pair(pair[0], pair[1]);
        ranges.push_back({address_of(base, bytes), bytes});
    }
    using Order = LineSequence::Order;
    constexpr std::pair<const char *, Order> kOrders[] = {{"ascending", Order::ascending},
                                                          {"pages", Order::pages},
                                                          {"shuffled", Order::shuffled},
                                                          {"random", Order::random}};
    const auto order = j.has("order") ? j.at("order").one_of(kOrders) : Order::ascending;
    LineSequence lines(std::move(ranges), order, j.get_or("seed", std::uint64_t{1}),
                       j.get_or("step", std::uint64_t{kLineBytes}));
    lines.skip(j.get_or("skip", std::uint64_t{0}));
    return lines;
}

Json Experiment::segments(const PathTimes &p) {
    Json j = Json::array();
    for (unsigned i = 0; i < kSegments; ++i)
        if (p.in[i])
            j.push_back({{"name", kSegmentNames[i]}, {"fs", p.in[i]}});
    return j;
}

std::string Experiment::supplier(unsigned type) const {
    // A protocol may name a kind that has no controller of its own: an L2 within the core's.
    if (type == ruby::MachineType_NULL || type >= ruby::MachineType_NUM)
        return "own";
    return ruby::MachineType_to_string(static_cast<ruby::MachineType>(type));
}

Json Experiment::counts(const StreamCounts &c) const {
    Json j{{"done", c.done}, {"latency_fs", c.latency}};
    j["shortest_fs"] = c.done ? Json(c.shortest) : Json(nullptr);
    j["longest_fs"] = c.longest;
    j["segments"] = segments(c.path);
    j["hops"] = Json::object();
    for (unsigned h = 0; h < c.by_hops.size(); ++h)
        if (c.by_hops[h])
            j["hops"][std::to_string(h)] = c.by_hops[h];
    j["suppliers"] = Json::object();
    for (unsigned t = 0; t < c.by_supplier.size(); ++t)
        if (c.by_supplier[t]) {
            auto &n = j["suppliers"][supplier(t)];
            n = (n.is_null() ? 0 : n.get<std::uint64_t>()) + c.by_supplier[t];
        }
    return j;
}

/// One access, done.
Json Experiment::account(const Access &a) const {
    Json number, chip, state;
    if (a.supplier_chip != Access::kUnknown16)
        chip = a.supplier_chip;
    if (a.supplier_number != Access::kUnknown16) {
        number = a.supplier_number;
        for (unsigned m = 0; m < machine_.protocol().machines; ++m)
            if (const ruby::MachineInfo &info = machine_.protocol().machine[m];
                info.type == a.supplier && a.supplier_state < info.states)
                state = info.state[a.supplier_state].name;
    }
    return {{"op", kOps[static_cast<unsigned>(a.kind)]},
            {"address", hex(a.addr.value)},
            {"issued", a.issued},
            {"done", a.done},
            {"latency_fs", a.done - a.issued},
            {"segments", segments(a.path)},
            {"hops", a.hops},
            {"supplier", supplier(a.supplier)},
            {"supplier_number", number},
            {"supplier_chip", chip},
            {"supplier_state", state},
            {"probes", a.probes}};
}

/// Streams of one phase, with the core of each and its description.
struct Experiment::Streams {
    std::vector<AccessStream *> all;
    std::vector<unsigned> cores;
    std::vector<ConfigReader> described;

    bool idle() const {
        return std::all_of(all.begin(), all.end(), [](const AccessStream *s) { return s->idle(); });
    }
};

/// What the counted part of a phase took.
struct Experiment::Cost {
    double host_s = 0;
    Tick simulated = 0;
    std::uint64_t events = 0;
};

Experiment::Streams Experiment::make_streams(const ConfigReader &phase) {
    Streams streams;
    streams.described = phase.at("streams").list();
    for (const ConfigReader &j : streams.described) {
        const unsigned core = core_of(j);
        streams_.emplace_back(machine_.queue_of_core(core), "stream" + std::to_string(names_++), machine_.port(core),
                              sequence(j), j.get_or("in_flight", 1u), kind_of(j.get_or("op", std::string("ld"))));
        streams.all.push_back(&streams_.back());
        streams.cores.push_back(core);
    }
    return streams;
}

void Experiment::start(const Streams &streams, std::uint64_t accesses) {
    const Tick t = start_time();
    for (AccessStream *s : streams.all)
        s->start(t, accesses);
}

void Experiment::reset_counts(const Streams &streams) {
    for (std::size_t i = 0; i < streams.all.size(); ++i)
        streams.all[i]->reset_counts(streams.described[i].get_or("log", std::size_t{0}));
    machine_.reset_stats();
}

/// Counts for a time, after another one.
Experiment::Cost Experiment::count_window(const ConfigReader &phase, const Streams &streams) {
    start(streams, AccessStream::kForever);
    run_until(now_ + phase.get_or("warm_fs", Tick{0}));
    reset_counts(streams);
    const double host = host_seconds();
    const Tick from = now_;
    const std::uint64_t events = machine_.events();
    run_until(now_ + phase.get<Tick>("window_fs"));
    return {host_seconds() - host, now_ - from, machine_.events() - events};
}

/// Counts a number of accesses of each stream, after others. The recorder, if any, sees the counted ones.
Experiment::Cost Experiment::count_accesses(const ConfigReader &phase, const Streams &streams,
                                            std::optional<TraceRecorder> &recorder) {
    const auto to_the_end = [&] { run_while(kSlice, [&] { return !streams.idle(); }); };
    if (const auto warm = phase.get_or("warm", std::uint64_t{0})) {
        start(streams, warm);
        to_the_end();
        settle();
    }
    reset_counts(streams);
    if (phase.get_or("trace", false))
        recorder.emplace(machine_);
    const double host = host_seconds();
    const std::uint64_t events = machine_.events();
    start(streams, phase.get<std::uint64_t>("accesses"));
    const Tick from = now_;
    to_the_end();
    return {host_seconds() - host, machine_.now() - from, machine_.events() - events};
}

Json Experiment::loads(const ConfigReader &phase) {
    const Streams streams = make_streams(phase);
    std::optional<TraceRecorder> recorder;
    const Cost cost = phase.has("window_fs") ? count_window(phase, streams) : count_accesses(phase, streams, recorder);
    Json answer{{"host_s", cost.host_s}, {"simulated_fs", cost.simulated}, {"events", cost.events}};
    answer["streams"] = Json::array();
    for (std::size_t i = 0; i < streams.all.size(); ++i) {
        Json j{{"core", streams.cores[i]}};
        j.update(counts(streams.all[i]->counts()));
        for (const Access &a : streams.all[i]->log())
            j["log"].push_back(account(a));
        answer["streams"].push_back(std::move(j));
    }
    if (phase.get_or("statistics", false))
        answer["statistics"] = machine_.stats();
    for (AccessStream *s : streams.all)
        s->stop();
    settle();
    if (recorder) {
        unsigned number = 0;
        for (AccessStream *s : streams.all)
            for (const Access &a : s->log())
                recorder->name_transaction(a.txn, number++);
        recorder->write(answer);
    }
    return answer;
}

/// One access of a script, with what it moves.
struct ScriptAccess {
    Access access;
    unsigned core = 0;
    unsigned step = 0;
    std::uint64_t value = 0;
    TraceRecorder *recorder = nullptr;
    unsigned number = 0;
    unsigned *open = nullptr;
};

/// Issues the accesses of one step at its tick.
struct Experiment::Step : Component {
    Step(EventQueue &queue, std::string name, Machine &machine, std::vector<ScriptAccess *> accesses)
        : Component(queue, std::move(name), wake), machine_(machine), accesses_(std::move(accesses)) {}

    static void wake(Component &c, Tick now) {
        auto &self = static_cast<Step &>(c);
        for (auto *a : self.accesses_)
            self.machine_.port(a->core).issue(a->access, now);
    }
    Machine &machine_;
    std::vector<ScriptAccess *> accesses_;
};

Json Experiment::script(const ConfigReader &phase) {
    if (machine_.processes().size() > 1)
        throw UserError("experiment: the steps of a script begin on all chips at once: expected no threads");
    std::optional<TraceRecorder> recorder;
    std::optional<TransitionLog> transitions;
    if (phase.has("trace") && phase.at("trace").value() == "transitions")
        transitions.emplace(machine_);
    else if (phase.get_or("trace", true))
        recorder.emplace(machine_);

    std::deque<ScriptAccess> accesses;
    unsigned step_number = 0;
    unsigned open = 0;
    for (const ConfigReader &step : phase.at("steps").list()) {
        std::vector<ScriptAccess *> together;
        for (const ConfigReader &j : step.list()) {
            auto &s = accesses.emplace_back();
            s.core = core_of(j);
            s.step = step_number;
            s.number = static_cast<unsigned>(accesses.size()) - 1;
            s.recorder = recorder ? &*recorder : nullptr;
            s.open = &open;
            const Addr at = j.get<Addr>("address");
            auto &a = s.access;
            a.addr = PhysAddr(address_of(at, 1));
            a.size = static_cast<std::uint16_t>(std::min<unsigned>(sizeof s.value, kLineBytes - line_offset(at)));
            a.kind = kind_of(j.get<std::string>("op"));
            // Stores write their own number, counted from 1, so that a later load shows whose value it saw.
            s.value = a.kind == AccessKind::store || a.kind == AccessKind::nt_store ? s.number + 1 : 0;
            a.data = a.kind == AccessKind::flush || a.kind == AccessKind::rmw ? nullptr : &s.value;
            a.rmw = [](void *context, void *bytes) {
                auto &self = *static_cast<ScriptAccess *>(context);
                std::memcpy(&self.value, bytes, self.access.size);
                ++self.value;
                std::memcpy(bytes, &self.value, self.access.size);
            };
            a.rmw_context = &s;
            a.owner = &s;
            a.on_done = [](Access &x) {
                auto &self = *static_cast<ScriptAccess *>(x.owner);
                --*self.open;
                if (self.recorder)
                    self.recorder->name_transaction(x.txn, self.number);
            };
            together.push_back(&s);
        }
        const Tick t = start_time();
        open = static_cast<unsigned>(together.size());
        steps_.push_back(std::make_unique<Step>(machine_.queue(), "script" + std::to_string(names_++), machine_,
                                                std::move(together)));
        steps_.back()->schedule(t);
        ++step_number;
        run_while(kStep, [&] { return open > 0; });
        settle();
        if (transitions)
            transitions->end_step();
    }

    Json answer;
    answer["accesses"] = Json::array();
    for (const auto &s : accesses) {
        const Access &a = s.access;
        Json j{{"id", s.number}, {"step", s.step}, {"core", s.core}};
        j.update(account(a));
        j["value"] = a.kind == AccessKind::flush ? Json(nullptr) : Json(s.value);
        answer["accesses"].push_back(std::move(j));
    }
    if (recorder)
        recorder->write(answer);
    if (transitions)
        transitions->write(answer);
    return answer;
}

Json Experiment::hits(const ConfigReader &phase) {
    const auto bytes = phase.get<std::uint64_t>("bytes");
    if (bytes < kLineBytes || (bytes & (bytes - 1)))
        throw UserError("experiment: a hit loop over " + std::to_string(bytes) + " bytes: a power of two");
    const auto wanted = phase.get<std::uint64_t>("loads");
    loops_.emplace_back(machine_.queue_of_core(core_of(phase)), "loop" + std::to_string(names_++),
                        machine_.port(core_of(phase)), address_of(phase.get<Addr>("base"), bytes), bytes, wanted);
    auto &loop = loops_.back();
    const Tick start = start_time();
    loop.start(start);
    const double host = host_seconds();
    run_while(1000 * kSlice, [&] { return !loop.finished(); });
    Json answer{{"host_s", host_seconds() - host}, {"simulated_fs", loop.local_time() - start}};
    answer["loads"] = wanted;
    answer["slow"] = loop.slow();
    now_ = std::max(now_, loop.local_time());
    settle();
    return answer;
}

} // namespace

std::string run_experiment(const std::string &description, const std::string &library, const std::string &request,
                           const MachineOptions &options, const Poll &poll) {
    Json answer{{"phases", Json::array()}};
    const auto asked = ConfigReader::parse(request, "experiment", "a request as experiment/experiment.hh has it");
    Experiment experiment(description, library, options, poll);
    using Phase = Json (Experiment::*)(const ConfigReader &);
    constexpr std::pair<const char *, Phase> kPhases[] = {
        {"loads", &Experiment::loads}, {"script", &Experiment::script}, {"hits", &Experiment::hits}};
    for (const ConfigReader &phase : ConfigReader(asked, "experiment").at("phases").list())
        answer["phases"].push_back((experiment.*phase.at("kind").one_of(kPhases))(phase));
    return answer.dump();
}

} // namespace moscope
