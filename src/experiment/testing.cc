// SPDX-License-Identifier: BSD-3-Clause
// What the tests of a machine share: a pool of lines, running to the end.
#include "experiment/testing.hh"

#include <bit>

namespace moscope::testing {

namespace {
constexpr Tick kSlice = 20'000'000'000; // 20 us
constexpr unsigned kStuckSlices = 500;  // 10 ms without an access done
constexpr Addr kFirst = 0x10000;
// Larger than a way of any cache or filter in use, so that all index bits agree.
constexpr std::uint64_t kStride = std::uint64_t{1} << 22;
} // namespace

std::vector<Addr> pool_of_lines(const Machine &m, unsigned near, unsigned strided) {
    std::vector<Addr> lines;
    for (unsigned node = 0; node < m.nodes(); ++node) {
        const std::uint64_t bytes = m.node_bytes(node);
        const Addr first = m.node_base(node) + std::min<std::uint64_t>(kFirst, bytes / 4);
        const std::uint64_t room = bytes / 2 / (strided + 1);
        const std::uint64_t stride = std::min(kStride, std::bit_floor(std::max<std::uint64_t>(room, kLineBytes)));
        if (first + (std::uint64_t{near} + 1) * kLineBytes > m.node_base(node) + bytes || stride < kLineBytes * 2)
            throw UserError("memory of node " + std::to_string(node) +
                            ": too small for the test: expected 64KiB or more");
        for (unsigned i = 0; i < near; ++i)
            lines.push_back(line_of(first) + Addr{i} * kLineBytes);
        for (unsigned i = 1; i <= strided; ++i)
            lines.push_back(line_of(first) + i * stride);
    }
    return lines;
}

std::vector<Port *> core_ports(Machine &m) {
    std::vector<Port *> ports;
    for (unsigned c = 0; c < m.cores(); ++c)
        ports.push_back(&m.port(c));
    return ports;
}

void run_to_end(Machine &m, const std::function<bool()> &finished, const std::function<std::uint64_t()> &done,
                const TestPoll &poll) {
    Tick until = m.queue().now();
    std::uint64_t last = done();
    unsigned idle = 0;
    while (!finished()) {
        until += kSlice;
        m.run(until);
        const std::uint64_t n = done();
        idle = n == last ? idle + 1 : 0;
        last = n;
        if (idle == kStuckSlices)
            throw ProtocolError("no progress: no access has finished for " +
                                std::to_string(kStuckSlices * (kSlice / kTicksPerNs / 1000)) + " us, " +
                                std::to_string(m.in_flight()) + " are in flight");
        if (poll)
            poll(n);
    }
    // Write-backs and acknowledgements are still under way. The run ends at a fixed tick and not with the last event,
    // because whether a core needs an event depends on how far it runs ahead, and statistics must not.
    until += 2 * kSlice;
    Component end(m.queue(), "end of the test", [](Component &, Tick) {});
    end.schedule(until - 1);
    m.run(until);
}

} // namespace moscope::testing
