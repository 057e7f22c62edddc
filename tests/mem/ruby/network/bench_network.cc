// SPDX-License-Identifier: BSD-3-Clause
// Host time of the network: messages go round between random controllers of an eight-chip machine with nine
// controllers per chip. Not a test; build it by hand with -O2 together with the network's sources and run it.
// Prints nanoseconds of host time per delivery: without the time of the bench itself, but with the event queue.
#include <chrono>
#include <cstdio>

#include "bench.hh"

using namespace moscope;
using namespace moscope::ruby;
using namespace moscope::ruby::bench;

namespace {

constexpr unsigned kPerChip = 9;

/// Stands for all controllers: takes what has come and sends it on, at the edges of a clock.
struct Driver : Component {
    Driver(Bench &bench, unsigned chips_apart, Tick period)
        : Component(bench.queue, "driver", [](Component &c, Tick now) { static_cast<Driver &>(c).wake(now); }),
          b(bench),
          reach(chips_apart),
          period_(period) {}

    unsigned destination(unsigned source) {
        const unsigned chip = source / kPerChip;
        const unsigned to = reach == 0 ? chip : static_cast<unsigned>(rng.below(8));
        return to * kPerChip + static_cast<unsigned>(rng.below(kPerChip));
    }
    void send(Message *m, unsigned source, Tick ready) {
        m->source = static_cast<NodeIndex>(source);
        m->destination().clear();
        m->destination().add_index(static_cast<NodeIndex>(destination(source)));
        m->note_destination();
        m->stamp = ready;
        b.net->ingress(static_cast<NodeIndex>(source))->push(m, ready);
    }
    void wake(Tick now) {
        const auto start = std::chrono::steady_clock::now();
        for (unsigned n = 0; n < b.controllers.size(); ++n)
            for (unsigned v = 0; v < 4; ++v)
                for (auto &buffer = b.from[n * 4 + v]; buffer.isReady(now);) {
                    hops += buffer.peek()->hops;
                    buffer.peek()->hops = 0;
                    ++received;
                    // Spread over the period, so that each message is a wake-up of its own.
                    send(buffer.pop(now), n, now + static_cast<Tick>(rng.below(static_cast<std::uint64_t>(period_))));
                }
        schedule(now + period_);
        own += std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - start).count();
    }

    Bench &b;
    unsigned reach;
    Tick period_;
    Rng rng{5};
    std::uint64_t received = 0, hops = 0;
    double own = 0; ///< host time of the bench itself, ns
};

void measure(const char *what, const NetworkParams &p, unsigned ideal_nodes, unsigned reach, unsigned messages) {
    Bench b(p, ideal_nodes);
    Driver d(b, reach, ns(20));
    for (unsigned i = 0; i < messages; ++i) {
        const unsigned source = i % static_cast<unsigned>(b.controllers.size());
        d.send(b.make(source, {}, i % 4, i % 4 == 2, 0), source, static_cast<Tick>(i));
    }
    d.schedule(ns(20));
    b.queue.run(ns(20'000));
    d.received = d.hops = 0;
    d.own = 0;
    const auto events = b.queue.events();
    const auto start = std::chrono::steady_clock::now();
    const Tick from = b.queue.now();
    Tick until = from;
    while (d.received < 3'000'000)
        b.queue.run(until += ns(10'000));
    const std::chrono::duration<double, std::nano> elapsed = std::chrono::steady_clock::now() - start;
    const double host = elapsed.count() - d.own;
    const auto n = static_cast<double>(d.received);
    std::printf("%-20s %6.1f ns per delivery, %.2f hops, %.2f wake-ups, %.0f deliveries per us\n", what, host / n,
                static_cast<double>(d.hops) / n, static_cast<double>(b.queue.events() - events) / n,
                n * 1000 / static_cast<double>((until - from) / kTicksPerNs));
}

} // namespace

int main() {
    NetworkParams ideal;
    ideal.kind = NetworkParams::Kind::ideal;
    ideal.ideal_latency = ns(1);
    auto ht = machine(8, kTwistedLadder, kPerChip);
    for (unsigned load : {20u, 100u, 1000u}) {
        std::printf("%u messages under way\n", load);
        measure("  ideal", ideal, 72, 1, load);
        measure("  same chip", ht, 0, 0, load);
        measure("  uniformly random", ht, 0, 1, load);
    }
}
