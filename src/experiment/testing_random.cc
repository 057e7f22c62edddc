// SPDX-License-Identifier: BSD-3-Clause
// The random test on a machine: its pool of lines, the run, and the coverage. At the end it checks what only the
// machine knows: that lines have a single writer, which values caches and memory hold, and that flushed lines have left
// all caches.
#include <chrono>

#include "cpu/testers/random_tester.hh"
#include "experiment/message_delays.hh"
#include "experiment/testing.hh"
#include "schema/config_reader.hh"

namespace moscope {

using nlohmann::json;
using testers::RandomTester;
using testers::RandomTesterParams;

namespace {

RandomTesterParams params_of(const ConfigReader &j) {
    RandomTesterParams p;
    j.read("ops", p.ops);
    j.read("seed", p.seed);
    if (j.has("in_flight"))
        p.in_flight = j.at("in_flight").integer(1u, testers::kMostInFlight);
    j.read("hot_lines", p.hot_lines);
    j.read("think_cycles", p.think_cycles);
    j.read("max_violations", p.max_violations);
    j.read("inline_hits", p.inline_hits);
    if (!j.get_or("flush", false))
        p.flushes = 0;
    if (!j.get_or("uncached_load", false))
        p.uncached_loads = 0;
    if (!j.get_or("fetch", true))
        p.fetches = 0;
    const auto nt = j.get_or("nt_store", std::string("none"));
    if (nt == "none")
        p.nt_stores = 0;
    p.whole_line_nt_stores = nt != "any";
    p.gentle_devices = j.get_or("devices", std::string("any")) == "gentle";
    return p;
}

/// Flushes lines one after the other, from each core in turn.
class Flusher : public Component {
  public:
    Flusher(EventQueue &queue, std::vector<Port *> ports, std::vector<Addr> lines)
        : Component(queue, "flusher", [](Component &c, Tick now) { static_cast<Flusher &>(c).next(now); }),
          ports_(std::move(ports)),
          lines_(std::move(lines)) {
        access_.size = kLineBytes;
        access_.kind = AccessKind::flush;
        access_.owner = this;
        access_.on_done = [](Access &a) {
            auto &f = *static_cast<Flusher *>(a.owner);
            ++f.at_;
            f.schedule_no_later_than(a.done + kTicksPerNs);
        };
    }
    std::size_t done() const { return at_; }
    bool finished() const { return at_ == lines_.size(); }

  private:
    void next(Tick now) {
        if (finished())
            return;
        access_.addr = PhysAddr(lines_[at_]);
        ports_[at_ % ports_.size()]->issue(access_, now);
    }
    std::vector<Port *> ports_;
    std::vector<Addr> lines_;
    Access access_;
    std::size_t at_ = 0;
};

std::string cached_somewhere(const Machine &m, Addr line) {
    std::string holders;
    for (auto *c : m.controllers()) {
        if (c->role != ruby::Role::cache)
            continue;
        const auto p = c->permission(line);
        if (p == ruby::AccessPermission_Read_Only || p == ruby::AccessPermission_Read_Write)
            holders += " " + c->name();
    }
    return holders;
}

void check_end(Machine &m, RandomTester &tester, const std::vector<Addr> &lines, bool flush, const TestPoll &poll) {
    if (const std::string wrong = m.check_single_writer(); !wrong.empty())
        tester.violation("at the end, more than one copy where one is writable: " + wrong);
    const bool data = m.checks_data();
    const auto compare = [&] {
        std::array<std::byte, kLineBytes> bytes;
        for (unsigned i = 0; i < lines.size(); ++i) {
            if (m.functional_read(lines[i], bytes.data()))
                tester.check_final(i, bytes.data());
            else
                tester.violation("at the end, nothing in the machine holds line " + std::to_string(lines[i]));
        }
    };
    if (data)
        compare();
    if (!flush || tester.counts().violations)
        return;
    Flusher flusher(m.queue(), testing::core_ports(m), lines);
    flusher.schedule(m.queue().now() + kTicksPerNs);
    testing::run_to_end(
        m, [&] { return flusher.finished(); }, [&] { return flusher.done(); }, poll);
    for (unsigned i = 0; i < lines.size(); ++i) {
        if (const std::string holders = cached_somewhere(m, lines[i]); !holders.empty())
            tester.violation("after its flush, line " + std::to_string(lines[i]) + " is still in" + holders);
        if (data)
            tester.check_final(i, m.memory() + lines[i]);
    }
}

/// The last accesses, five numbers each (testing.hh); "first" is the number of the first of these accesses.
json record_json(const RandomTester &tester, std::size_t last) {
    const auto &all = tester.recorded();
    const std::size_t first = all.size() > last ? all.size() - last : 0;
    json accesses = json::array();
    for (std::size_t i = first; i < all.size(); ++i) {
        const auto &a = all[i];
        accesses.push_back({a.who, static_cast<unsigned>(a.kind), a.addr, a.size, a.issued});
    }
    return {{"first", first}, {"accesses", std::move(accesses)}};
}

/// (machine, state, event) triples that the protocol declares, and those that some controller took.
void add_coverage(const Machine &m, json &out) {
    const ruby::ProtocolInfo &protocol = m.protocol();
    json unreached = json::array();
    std::uint64_t reached = 0, declared = 0;
    for (unsigned i = 0; i < protocol.machines; ++i) {
        const ruby::MachineInfo &info = protocol.machine[i];
        // A pair may have several transitions, by request type.
        std::map<std::pair<unsigned, unsigned>, std::uint64_t> taken;
        for (unsigned t = 0; t < info.transitions; ++t) {
            auto &n = taken[{info.transition[t].state, info.transition[t].event}];
            for (const auto *c : m.controllers())
                if (c->machineID.type == info.type)
                    n += c->transition_counts()[t];
        }
        declared += taken.size();
        for (const auto &[key, n] : taken) {
            if (n)
                ++reached;
            else
                unreached.push_back(std::string(info.name) + "." + info.state[key.first].name + "." +
                                    info.event[key.second]);
        }
    }
    out["reached"] = reached;
    out["declared"] = declared;
    out["unreached"] = std::move(unreached);
}

} // namespace

std::string run_random_test(const std::string &machine, const std::string &library, const std::string &request,
                            MachineOptions options, const TestPoll &poll) {
    const json asked = ConfigReader::parse(request, "random test", "a request as experiment/testing.hh has it");
    const ConfigReader j(asked, "random test");
    const RandomTesterParams p = params_of(j);
    Machine m(machine, library, options);
    const auto lines =
        testing::pool_of_lines(m, j.get_or("lines_per_node", 4u), j.get_or("strided_lines_per_node", 5u));
    std::vector<Port *> devices;
    if (j.get_or("devices", std::string("any")) != "none")
        for (unsigned i = 0; i < m.dma_ports(); ++i)
            devices.push_back(&m.dma_port(i));
    RandomTester tester(m.queue(), testing::core_ports(m), devices, lines, p);
    tester.context = [&m](Addr line) { return m.line_history(line); };
    const bool record = j.get_or("record", false);
    std::optional<experiment::MessageDelays> delays;
    if (record) {
        tester.record();
        delays.emplace(m, [&tester](TxnId txn) { return tester.number_of(txn); });
        delays->hash(p.seed, j.get<Tick>("delays_max_fs"));
        tester.on_done = [&delays](TxnId txn, int number) { delays->name_transaction(txn, number); };
    }
    const auto began = std::chrono::steady_clock::now();
    std::chrono::duration<double> took{};
    Tick sim = 0;
    json out;
    const auto stopped = [&] {
        took = std::chrono::steady_clock::now() - began;
        sim = m.queue().now();
    };
    try {
        tester.start(0);
        testing::run_to_end(
            m, [&] { return tester.finished(); }, [&] { return tester.counts().finished; }, poll);
        stopped();
        check_end(m, tester, lines, p.flushes != 0, poll);
    } catch (const ProtocolError &error) { // what was reached until then counts
        stopped();
        out["protocol_error"] = error.what();
    } catch (const TestStopped &) {
        stopped();
        out["stopped"] = true;
    }

    const auto &n = tester.counts();
    out["ops"] = n.finished;
    out["checked_loads"] = n.checked_loads;
    for (unsigned k = 0; k < kAccessKinds; ++k)
        out["by_kind"][testers::kind_name(static_cast<AccessKind>(k))] = n.by_kind[k];
    out["inline_hits"] = n.inline_hits;
    out["device_reads"] = n.device_reads;
    out["device_writes"] = n.device_writes;
    out["sim_fs"] = sim;
    out["seconds"] = took.count();
    out["loads_per_second"] = static_cast<double>(n.checked_loads) / std::max(took.count(), 1e-9);
    add_coverage(m, out);
    out["violations"] = tester.violations();
    if (record && (tester.counts().violations || out.contains("protocol_error")))
        out["record"] = record_json(tester, j.get_or("record_last", std::size_t{100'000}));
    return out.dump();
}

} // namespace moscope
