// SPDX-License-Identifier: BSD-3-Clause
// Hardening: random programs with random tables on a whole board. The claim is that the simulator survives (run it in the asan
// variant for the claim about bounds) and that nothing CPUID promises is lacking. MOSCOPE_FUZZ_STREAMS and MOSCOPE_FUZZ_SEED
// change the amount and the first batch; each batch starts afresh, so its number is enough to repeat a crash.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "board/fuzz_machine.hh"

namespace moscope::test {
namespace {

constexpr std::uint64_t kBatch = 5000;

std::uint64_t from_environment(const char *name, std::uint64_t otherwise) {
    const char *text = std::getenv(name);
    return text ? std::strtoull(text, nullptr, 10) : otherwise;
}

void fuzz(std::uint64_t streams) {
    streams = from_environment("MOSCOPE_FUZZ_STREAMS", streams);
    const std::uint64_t first = from_environment("MOSCOPE_FUZZ_SEED", 1);
    for (std::uint64_t batch = first; streams; ++batch) {
        if (batch % 20 == 0 || std::getenv("MOSCOPE_FUZZ_SEED"))
            std::fprintf(stderr, "batch %llu\n", static_cast<unsigned long long>(batch));
        FuzzMachine m(batch);
        for (std::uint64_t n = 0; n < kBatch && streams; n += FuzzMachine::kCores) {
            const std::string lacking = m.streams();
            EXPECT_EQ(lacking, "") << "batch " << batch;
            streams -= std::min<std::uint64_t>(streams, FuzzMachine::kCores);
        }
    }
}

TEST(Fuzz, RandomProgramsMayStopTheGuestButNeverTheSimulator) { fuzz(10'000); }
TEST(FuzzLong, RandomProgramsMayStopTheGuestButNeverTheSimulator) { fuzz(10'000'000); }

} // namespace
} // namespace moscope::test
