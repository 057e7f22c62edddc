// SPDX-License-Identifier: BSD-3-Clause
// Page walks in detailed mode beside other cores that change the tables.
#include <memory>

#include <gtest/gtest.h>

#include "cpu/x86/timed/timed_machine.hh"

using namespace moscope;
using namespace moscope::x86;
using namespace moscope::x86::test;

namespace {

constexpr Addr kCode = 0x1000, kLine = 0x40040, kPage = 0x50000;
constexpr Addr kTable = SystemMachine::kTables + 0x3000, kEntry = kTable + (kPage >> 12) * 8;
constexpr std::uint64_t kPresentWritableUser = 7, kAccessedDirty = 0x60;

/// The core stores to a line that takes 500 ns, then to a page whose entry says neither accessed nor dirty. Its walk reads
/// the entry at once and updates it when the first store is done. After 200 ns another core takes the entry's line and
/// writes `changed`.
struct Walks : testing::TestWithParam<const char *> {
    void run(std::uint64_t changed) {
        TimedParams params;
        params.core.model = GetParam();
        t = std::make_unique<TimedMachine>(params);
        t->m.small_pages();
        for (Addr page = 0; page < 512; ++page)
            t->m.write<std::uint64_t>(kTable + 8 * page,
                                      page << 12 | kPresentWritableUser | (page == kPage >> 12 ? 0 : kAccessedDirty));
        t->m.core.flush_tlb(true);
        t->m.core.r[rbx] = kLine;
        t->m.core.r[rsi] = kPage + 0x80;
        t->m.core.r[rax] = 1;
        t->m.code(kCode, {0x88, 0x03, 0x88, 0x06, 0xf4}); // mov [rbx], al; mov [rsi], al; hlt
        t->m.core.rip = kCode;
        t->port.lose(kLine, 500 * kTicksPerNs);
        t->begin();
        t->at(200 * kTicksPerNs, [this, changed] {
            EXPECT_EQ(entry(), kPage | kPresentWritableUser);
            t->port.lose(line_of(kEntry));
            t->m.write<std::uint64_t>(kEntry, changed);
        });
        t->queue.run(5000 * kTicksPerNs);
    }
    std::uint64_t entry() { return t->m.read<std::uint64_t>(kEntry); }
    unsigned byte(Addr a) { return static_cast<unsigned>(t->m.memory[a]); }
    std::unique_ptr<TimedMachine> t;
};

} // namespace

TEST_P(Walks, AnEntryThatIsClearedBeforeItsBitsAreSetFaults) {
    run(0);
    EXPECT_EQ(entry(), 0u);
    EXPECT_EQ(byte(kPage + 0x80), 0u);
    EXPECT_EQ(t->m.core.cr2, kPage + 0x80);
}

TEST_P(Walks, AnEntryThatIsChangedBeforeItsBitsAreSetIsTheOneThatCounts) {
    run((kPage + 0x1000) | kPresentWritableUser);
    EXPECT_EQ(entry(), (kPage + 0x1000) | kPresentWritableUser | kAccessedDirty);
    EXPECT_EQ(byte(kPage + 0x80), 0u);
    EXPECT_EQ(byte(kPage + 0x1080), 1u);
}

INSTANTIATE_TEST_SUITE_P(Models, Walks, testing::Values("blocking", "out_of_order"));
