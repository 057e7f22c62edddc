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
#include "experiment/access_json.hh"
#include "experiment/access_request.hh"
#include "experiment/paced_machine.hh"
#include "experiment/script.hh"
#include "experiment/trace_recorder.hh"

namespace moscope {

namespace {

using experiment::access_json;
using experiment::address_of;
using experiment::core_of;
using experiment::kind_of;
using experiment::segments_json;
using experiment::supplier_name;

using Json = nlohmann::ordered_json;
using HostClock = std::chrono::steady_clock;

/// Processor time of this thread, so that what else runs on the host does not count.
double own_processor_seconds() {
    timespec t{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

/// The phases of one request, on one machine.
class Experiment {
  public:
    Experiment(const std::string &description, const std::string &library, const MachineOptions &options,
               const Poll &poll)
        : paced_(description, library, options, poll) {}

    Json loads(const ConfigReader &phase);
    Json script(const ConfigReader &phase) { return Script(paced_, phase).run(); }
    Json hits(const ConfigReader &phase);

  private:
    struct Streams;
    struct Cost;
    Streams make_streams(const ConfigReader &phase);
    void start(const Streams &streams, std::uint64_t accesses);
    void reset_counts(const Streams &streams);
    Cost count_window(const ConfigReader &phase, const Streams &streams);
    Cost count_accesses(const ConfigReader &phase, const Streams &streams, std::optional<TraceRecorder> &recorder);

    /// Wall-clock time where there are several threads, because each waits for the others.
    double host_seconds() const {
        return machine_.processes().size() > 1
                   ? std::chrono::duration<double>(HostClock::now().time_since_epoch()).count()
                   : own_processor_seconds();
    }
    LineSequence sequence(const ConfigReader &j) const;
    Json counts(const StreamCounts &c) const;

    PacedMachine paced_;
    Machine &machine_ = paced_.machine;
    unsigned names_ = 0;
    // Components must stay, because the queue refers to them by number.
    std::deque<AccessStream> streams_;
    std::deque<HitLoop> loops_;
};

LineSequence Experiment::sequence(const ConfigReader &j) const {
    std::vector<LineSequence::Range> ranges;
    for (const ConfigReader &r : j.at("ranges").list()) {
        const auto pair = r.as<std::vector<std::uint64_t>>();
        if (pair.size() != 2 || line_offset(pair[0]) || pair[1] < kLineBytes)
            r.refuse("is not a range of whole lines", "[base, bytes]");
        const auto [base, bytes] = std::pair(pair[0], pair[1]);
        ranges.push_back({address_of(machine_, base, bytes), bytes});
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

Json Experiment::counts(const StreamCounts &c) const {
    Json j{{"done", c.done}, {"latency_fs", c.latency}};
    j["shortest_fs"] = c.done ? Json(c.shortest) : Json(nullptr);
    j["longest_fs"] = c.longest;
    j["segments"] = segments_json(c.path);
    j["hops"] = Json::object();
    for (unsigned h = 0; h < c.by_hops.size(); ++h)
        if (c.by_hops[h])
            j["hops"][std::to_string(h)] = c.by_hops[h];
    j["suppliers"] = Json::object();
    for (unsigned t = 0; t < c.by_supplier.size(); ++t)
        if (c.by_supplier[t]) {
            auto &n = j["suppliers"][supplier_name(t)];
            n = (n.is_null() ? 0 : n.get<std::uint64_t>()) + c.by_supplier[t];
        }
    return j;
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
        const unsigned core = core_of(machine_, j);
        streams_.emplace_back(machine_.queue_of_core(core), "stream" + std::to_string(names_++), machine_.port(core),
                              sequence(j), j.get_or("in_flight", 1u), kind_of(j.get_or("op", std::string("ld"))));
        streams_.back().as_instruction(names_);
        streams.all.push_back(&streams_.back());
        streams.cores.push_back(core);
    }
    return streams;
}

void Experiment::start(const Streams &streams, std::uint64_t accesses) {
    const Tick t = paced_.start_time();
    for (AccessStream *s : streams.all)
        s->start(t, accesses);
}

void Experiment::reset_counts(const Streams &streams) {
    for (std::size_t i = 0; i < streams.all.size(); ++i)
        streams.all[i]->reset_counts(streams.described[i].get_or("log", std::size_t{0}));
    machine_.reset_stats();
}

/// Counts for `window_fs`, after a warm-up of `warm_fs`.
Experiment::Cost Experiment::count_window(const ConfigReader &phase, const Streams &streams) {
    start(streams, AccessStream::kForever);
    paced_.run_until(paced_.now + phase.get_or("warm_fs", Tick{0}));
    reset_counts(streams);
    const double host = host_seconds();
    const Tick from = paced_.now;
    const std::uint64_t events = machine_.events();
    paced_.run_until(paced_.now + phase.get<Tick>("window_fs"));
    return {host_seconds() - host, paced_.now - from, machine_.events() - events};
}

/// Counts `accesses` accesses of each stream, after `warm` others. The recorder, if any, sees only the counted ones.
Experiment::Cost Experiment::count_accesses(const ConfigReader &phase, const Streams &streams,
                                            std::optional<TraceRecorder> &recorder) {
    const auto to_the_end = [&] { paced_.run_while(PacedMachine::kSlice, [&] { return !streams.idle(); }); };
    if (const auto warm = phase.get_or("warm", std::uint64_t{0})) {
        start(streams, warm);
        to_the_end();
        paced_.settle();
    }
    reset_counts(streams);
    if (phase.get_or("trace", false))
        recorder.emplace(machine_);
    const double host = host_seconds();
    const std::uint64_t events = machine_.events();
    start(streams, phase.get<std::uint64_t>("accesses"));
    const Tick from = paced_.now;
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
            j["log"].push_back(access_json(machine_, a));
        answer["streams"].push_back(std::move(j));
    }
    if (phase.get_or("statistics", false))
        answer["statistics"] = machine_.stats();
    for (AccessStream *s : streams.all)
        s->stop();
    paced_.settle();
    if (recorder) {
        unsigned number = 0;
        for (AccessStream *s : streams.all)
            for (const Access &a : s->log())
                recorder->name_transaction(a.txn, number++);
        recorder->write(answer);
    }
    return answer;
}

Json Experiment::hits(const ConfigReader &phase) {
    const auto bytes = phase.get<std::uint64_t>("bytes");
    if (bytes < kLineBytes || (bytes & (bytes - 1)))
        throw UserError("experiment: a hit loop over " + std::to_string(bytes) + " bytes: expected a power of two of " +
                        std::to_string(kLineBytes) + " or more");
    const auto wanted = phase.get<std::uint64_t>("loads");
    loops_.emplace_back(machine_.queue_of_core(core_of(machine_, phase)), "loop" + std::to_string(names_++),
                        machine_.port(core_of(machine_, phase)), address_of(machine_, phase.get<Addr>("base"), bytes),
                        bytes, wanted);
    auto &loop = loops_.back();
    const Tick start = paced_.start_time();
    loop.start(start);
    const double host = host_seconds();
    paced_.run_while(1000 * PacedMachine::kSlice, [&] { return !loop.finished(); });
    Json answer{{"host_s", host_seconds() - host}, {"simulated_fs", loop.local_time() - start}};
    answer["loads"] = wanted;
    answer["slow"] = loop.slow();
    paced_.now = std::max(paced_.now, loop.local_time());
    paced_.settle();
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
