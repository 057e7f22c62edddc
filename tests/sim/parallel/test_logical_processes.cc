// SPDX-License-Identifier: BSD-3-Clause
// Serial phases as components see them: fibers that wait for one, and events of the serial process.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "sim/fiber.hh"
#include "sim/parallel/logical_processes.hh"

using namespace moscope;

namespace {

constexpr Tick kLookahead = 100;

/// Wakes at the given tick and notes its name in the common log in a serial phase.
struct Writer : Component {
    Writer(LogicalProcesses &all, EventQueue &q, unsigned number, std::vector<std::string> &log)
        : Component(q, "writer", [](Component &c, Tick) { static_cast<Writer &>(c).fiber.resume(); }),
          all(all),
          number(number),
          log(log) {}
    void body() {
        waited = all.wait_for_serial_phase(queue(), number, fiber);
        log.push_back(std::to_string(queue().now()) + " writer " + std::to_string(number));
        resumed_at = all.resume_tick(queue());
    }
    LogicalProcesses &all;
    unsigned number;
    std::vector<std::string> &log;
    bool waited = false;
    Tick resumed_at = 0;
    Fiber fiber{[this] { body(); }};
};

struct Device : Component {
    Device(EventQueue &q, std::vector<std::string> &log)
        : Component(
              q, "device",
              [](Component &c, Tick now) { static_cast<Device &>(c).log.push_back(std::to_string(now) + " device"); }),
          log(log) {}
    std::vector<std::string> &log;
};

TEST(LogicalProcesses, ASerialPhaseRunsFibersAndDevicesInTheOrderOfTheirTicks) {
    for (const unsigned threads : {1u, 2u, 3u}) {
        LogicalProcesses processes;
        processes.divide(3);
        processes.start_threads(kLookahead, threads, {});
        std::vector<std::string> log;
        unsigned phases = 0;
        processes.on_serial_phase([&] {
            ++phases;
            for (const EventQueue *q : processes.queues())
                EXPECT_GE(q->next(), kLookahead) << "all processes are at rest";
        });
        Writer late(processes, processes.queue(0), 0, log), early(processes, processes.queue(2), 2, log),
            second(processes, processes.queue(1), 1, log);
        Device device(processes.serial_queue(), log);
        late.schedule(60);
        early.schedule(20);
        second.schedule(20);
        device.schedule(40);
        Component first(processes.queue(0), "first", [](Component &, Tick) {}); // the epoch begins at tick 0
        first.schedule(0);
        processes.run(1'000);
        EXPECT_EQ(log, (std::vector<std::string>{"20 writer 1", "20 writer 2", "40 device", "60 writer 0"}));
        EXPECT_TRUE(late.waited);
        EXPECT_EQ(late.resumed_at, kLookahead) << "the chip has completed the epoch";
        EXPECT_EQ(phases, 1u);
    }
}

TEST(LogicalProcesses, WithOneProcessThereIsNoWait) {
    LogicalProcesses processes;
    std::vector<std::string> log;
    Writer writer(processes, processes.queue(5), 0, log);
    Device device(processes.serial_queue(), log);
    EXPECT_EQ(&processes.queue(5), &processes.serial_queue());
    writer.schedule(60);
    device.schedule(40);
    processes.run(1'000);
    EXPECT_EQ(log, (std::vector<std::string>{"40 device", "60 writer 0"}));
    EXPECT_FALSE(writer.waited);
    EXPECT_EQ(writer.resumed_at, 0);
    EXPECT_EQ(processes.events(), 2u);
}

} // namespace
