// SPDX-License-Identifier: BSD-3-Clause
// Litmus tests, contention for one line, and the mix that comparisons of runs use.
#include "cpu/testers/contender.hh"
#include "cpu/testers/litmus.hh"
#include "cpu/testers/mix_core.hh"
#include "experiment/testing.hh"
#include "schema/config_reader.hh"

namespace moscope {

using nlohmann::json;
using namespace testers;

namespace {

constexpr std::pair<const char *, TsoOp::Kind> kOps[] = {{"load", TsoOp::Kind::load},
                                                         {"store", TsoOp::Kind::store},
                                                         {"swap", TsoOp::Kind::swap},
                                                         {"add", TsoOp::Kind::add},
                                                         {"fence", TsoOp::Kind::fence}};

LitmusTest litmus_of(const ConfigReader &j, unsigned cores) {
    LitmusTest t;
    t.variables = j.get<unsigned>("vars");
    t.registers = j.get_or("regs", 0u);
    t.rounds = j.get_or("rounds", 100u);
    t.seed = j.get_or("seed", std::uint64_t{1});
    for (const ConfigReader &thread : j.at("threads").list()) {
        t.threads.emplace_back();
        for (const ConfigReader &o : thread.list()) {
            LitmusOp op;
            op.kind = o.at("op").one_of(kOps);
            op.variable = o.get_or("var", 0u);
            op.reg = o.get_or("reg", 0u);
            op.value = o.get_or("value", 0u);
            if (op.variable >= t.variables || (o.has("reg") && op.reg >= t.registers))
                throw UserError("litmus test: variable or register out of range: expected one that the test declares");
            t.threads.back().push_back(op);
        }
        if (t.threads.back().size() > TsoCore::kOps)
            throw UserError("litmus test: too many operations: expected at most " + std::to_string(TsoCore::kOps) +
                            " operations per thread");
    }
    if (t.threads.empty() || t.threads.size() > cores)
        throw UserError("litmus test: " + std::to_string(t.threads.size()) + " threads: expected 1 to " +
                        std::to_string(cores) + ", the cores of the machine");
    if (t.variables == 0 || t.variables > TsoCore::kRegisters)
        throw UserError("litmus test: " + std::to_string(t.variables) + " variables: expected 1 to " +
                        std::to_string(TsoCore::kRegisters));
    return t;
}

} // namespace

std::string run_litmus(const std::string &machine, const std::string &library, const std::string &request,
                       MachineOptions options, const TestPoll &poll) {
    Machine m(machine, library, options);
    const json j = ConfigReader::parse(request, "litmus test", "a request as experiment/testing.hh has it");
    const LitmusTest test = litmus_of({j, "litmus test"}, m.cores());
    // Enough lines for every group of cores.
    const unsigned per_node = 2 + m.cores() * test.variables / m.nodes();
    Litmus litmus(m.queue(), testing::core_ports(m), testing::pool_of_lines(m, per_node, per_node / 2), test);
    litmus.start(0);
    testing::run_to_end(
        m, [&] { return litmus.finished(); }, [&] { return litmus.runs(); }, poll);
    json out;
    out["runs"] = litmus.runs();
    out["outcomes"] = json::array();
    for (const auto &[values, count] : litmus.outcomes())
        out["outcomes"].push_back({{"values", values}, {"count", count}});
    return out.dump();
}

std::string run_contention(const std::string &machine, const std::string &library, const std::string &request,
                           MachineOptions options, const TestPoll &poll) {
    const json asked = ConfigReader::parse(request, "contention", "a request as experiment/testing.hh has it");
    const ConfigReader j(asked, "contention");
    Machine m(machine, library, options);
    const unsigned node = j.get_or("node", 0u);
    if (node >= m.nodes())
        throw UserError("contention: node " + std::to_string(node) + ": expected a node below " +
                        std::to_string(m.nodes()));
    const bool rmw = j.get_or("kind", std::string("store")) == "rmw";
    const AccessKind kind = rmw ? AccessKind::rmw : AccessKind::store;
    const Addr line = m.node_base(node);
    std::vector<std::unique_ptr<Contender>> cores;
    for (unsigned c = 0; c < m.cores(); ++c) {
        cores.push_back(std::make_unique<Contender>(m.queue(), c, m.port(c), PhysAddr(line), kind,
                                                    j.get_or("until_fs", Tick{100'000'000'000})));
        cores.back()->schedule(0);
    }
    const auto writes = [&] {
        std::uint64_t n = 0;
        for (const auto &c : cores)
            n += c->writes();
        return n;
    };
    const auto finished = [&] {
        return std::all_of(cores.begin(), cores.end(), [](const auto &c) { return c->finished(); });
    };
    testing::run_to_end(m, finished, writes, poll);
    json out;
    for (unsigned c = 0; c < m.cores(); ++c) {
        out["writes"].push_back(cores[c]->writes());
        out["chips"].push_back(m.chip_of_core(c));
        out["longest_fs"].push_back(cores[c]->longest());
    }
    std::array<std::byte, kLineBytes> bytes{};
    m.functional_read(line, bytes.data());
    std::uint64_t value;
    std::memcpy(&value, bytes.data(), sizeof value);
    out["final"] = value;
    return out.dump();
}

std::string run_mix(const std::string &machine, const std::string &library, const std::string &request,
                    MachineOptions options, const TestPoll &poll) {
    const json asked = ConfigReader::parse(request, "mix", "a request as experiment/testing.hh has it");
    const ConfigReader j(asked, "mix");
    Machine m(machine, library, options);
    MixParams p;
    j.read("steps", p.steps);
    j.read("seed", p.seed);
    j.read("private_bytes", p.private_bytes);
    j.read("shared_bytes", p.shared_bytes);
    std::vector<std::unique_ptr<MixCore>> cores;
    for (unsigned c = 0; c < m.cores(); ++c) {
        const Addr base = m.node_base(m.chip_of_core(c) % m.nodes());
        const Addr own = base + (Addr{1} << 20) + c * ((p.private_bytes + 4095) & ~std::uint64_t{4095});
        cores.push_back(std::make_unique<MixCore>(m.queue_of_core(c), c, m.port(c), own, m.node_base(0), p));
        cores.back()->start(0);
    }
    const auto finished = [&] {
        return std::all_of(cores.begin(), cores.end(), [](const auto &c) { return c->finished(); });
    };
    const auto done = [&] { return m.events(); };
    testing::run_to_end(m, finished, done, poll);
    json out;
    for (const auto &c : cores) {
        out["hashes"].push_back(c->hash());
        out["finished_fs"].push_back(c->finished_at());
    }
    out["statistics"] = m.stats();
    return out.dump();
}

} // namespace moscope
