// SPDX-License-Identifier: BSD-3-Clause
// A machine that continues from a checkpoint behaves as one that never stopped, also where a guest changes its page
// tables without a flush: the translations that the processor still holds are part of the checkpoint.
#include <gtest/gtest.h>

#include <cstring>
#include <initializer_list>
#include <memory>
#include <string>
#include <vector>

#include "board/board.hh"
#include "cpu/x86/family10h_model.hh"

namespace moscope {
namespace {

constexpr Addr kTop = 0x100000, kPdpt = 0x101000, kPd = 0x102000, kPt = 0x103000, kCode = 0x10000;
constexpr Addr kSmall = 0x200000, kLarge = 0x400000; ///< mapped by small pages, by one large page; of equal TLB index
constexpr std::uint64_t kAccessed = 0x20;
using Outcome = FunctionalScheduler::Outcome;

SystemConfig one_core() {
    SystemConfig config;
    config.cores = config.cores_per_chip = config.chips = 1;
    config.memory_per_node = 16 << 20;
    config.hops = {{0}};
    config.cpu = x86::test::family10h_model();
    return config;
}

struct Guest {
    Guest() {
        write(kTop, kPdpt | 7);
        write(kPdpt, kPd | 7);
        write(kPd, 0x87);
        write(kPd + 8, kPt | 7);
        write(kPd + 16, kLarge | 0x87);
        for (unsigned i = 0; i < 512; ++i)
            write(kPt + 8 * i, (kSmall + 0x1000 * i) | 7);
        core.cr3 = kTop;
        core.cr0 = x86::cr0::pe | x86::cr0::pg | x86::cr0::wp | x86::cr0::et | x86::cr0::ne;
        core.cr4 = x86::cr4::pae;
        core.efer = x86::efer::lme | x86::efer::lma;
        for (unsigned s = 0; s < x86::kSegs; ++s)
            core.seg[s] = {0, 0xffffffff, static_cast<std::uint16_t>(s == x86::cs ? 8 : 16),
                           static_cast<std::uint16_t>(s == x86::cs ? 0xa09b : 0xc093)};
        core.mode_changed();
    }
    void write(Addr a, std::uint64_t x) { std::memcpy(memory.base() + a, &x, 8); }
    void code(Addr at, std::initializer_list<int> bytes) {
        Addr a = at;
        for (const int b : bytes)
            memory.base()[a++] = static_cast<std::byte>(b);
        core.rip = at;
    }
    Outcome go_on() {
        board.clear_ending();
        for (unsigned n = 0; n < 1000; ++n)
            if (const Outcome o = board.scheduler.run([] { return true; }); o != Outcome::running)
                return o;
        return Outcome::running;
    }
    std::vector<std::uint8_t> state() {
        Archive a;
        board.archive(a);
        return a.bytes();
    }
    void become(Guest &other) {
        memory.clear();
        std::memcpy(memory.base(), other.memory.base(), memory.bytes());
        Archive a(other.state());
        board.archive(a);
        EXPECT_TRUE(a.at_end());
    }

    SystemConfig config = one_core();
    EventQueue queue;
    GuestMemory memory{config.memory()};
    Board board{config, queue, memory};
    x86::Core &core = *board.cores[0];
};

/// Both run to their end, which is one HLT with interrupts off; what they have seen of the accessed bit is in RBX.
void go_on_and_compare(Guest &whole, std::uint64_t accessed) {
    Guest rest;
    rest.become(whole);
    EXPECT_EQ(rest.state(), whole.state());
    for (Guest *g : {&whole, &rest})
        ASSERT_EQ(g->go_on(), Outcome::hang);
    EXPECT_EQ(whole.core.r[x86::rbx] & kAccessed, accessed);
    EXPECT_EQ(rest.core.r[x86::rbx], whole.core.r[x86::rbx]);
    EXPECT_EQ(std::memcmp(rest.memory.base(), whole.memory.base(), whole.memory.bytes()), 0);
    EXPECT_EQ(rest.state(), whole.state());
}

/// mov rax, [rdi]; btr qword [rsi], 5; m5 checkpoint; mov rax, [rdi+rdx]; mov rbx, [rsi]; hlt
void reads_twice(Guest &g, Addr data, Addr distance, Addr entry) {
    g.code(kCode, {0x48, 0x8b, 0x07, 0x48, 0x0f, 0xba, 0x36, 0x05, 0x0f, 0x04,
                   0x43, 0x00, 0x48, 0x8b, 0x04, 0x17, 0x48, 0x8b, 0x1e, 0xf4});
    g.core.r[x86::rdi] = data;
    g.core.r[x86::rdx] = distance;
    g.core.r[x86::rsi] = entry;
    ASSERT_EQ(g.go_on(), Outcome::stopped);
}

TEST(Continue, ATranslationThatIsRememberedLeavesTheAccessedBitAlone) {
    Guest g;
    reads_twice(g, kSmall, 0, kPt);
    go_on_and_compare(g, 0);
}

TEST(Continue, ARememberedTranslationOfALargePageServesItsOtherPartsAndLeavesTheBitAlone) {
    Guest g;
    reads_twice(g, kLarge, 0x5000, kPd + 16);
    go_on_and_compare(g, 0);
}

TEST(Continue, ATranslationThatIsNotRememberedSetsTheAccessedBit) {
    Guest g;
    reads_twice(g, kSmall, 0x1000, kPt + 8); // the first read is of another page than the second
    go_on_and_compare(g, kAccessed);
}

TEST(Continue, APageThatWasMovedIsReadWhereItWas) {
    Guest g;
    g.write(kSmall, 0x1111);
    g.write(kSmall + 0x3000, 0x2222);
    reads_twice(g, kSmall, 0, kPt);
    g.write(kPt, (kSmall + 0x3000) | 7);
    go_on_and_compare(g, 0);
    EXPECT_EQ(g.core.r[x86::rax], 0x1111u);
}

TEST(Continue, CodeThatRanBeforeTheCheckpointRunsWithoutAPageWalk) {
    Guest g;
    // l: btr qword [rsi], 5; mov rax, [rdi], which takes the code's place in the TLB; m5 checkpoint;
    // mov rbx, [rsi]; dec ecx; jnz l; hlt
    g.code(kSmall, {0x48, 0x0f, 0xba, 0x36, 0x05, 0x48, 0x8b, 0x07, 0x0f, 0x04,
                    0x43, 0x00, 0x48, 0x8b, 0x1e, 0xff, 0xc9, 0x75, 0xed, 0xf4});
    g.core.r[x86::rsi] = kPt;
    g.core.r[x86::rdi] = kLarge;
    g.core.r[x86::rcx] = 2;
    ASSERT_EQ(g.go_on(), Outcome::stopped);
    ASSERT_EQ(g.go_on(), Outcome::stopped);
    go_on_and_compare(g, 0);
}

TEST(Continue, CountsContinueFromTheCheckpoint) {
    Guest g, rest;
    g.board.operations = 3;
    g.board.unknown_msrs = {{0x123, 2}, {0xc0010117, 1}};
    g.core.spun = 5;
    rest.board.unknown_msrs = {{0x10, 1}};
    rest.become(g);
    EXPECT_EQ(rest.board.operations, 3u);
    EXPECT_EQ(rest.board.unknown_msrs, g.board.unknown_msrs);
    EXPECT_EQ(rest.core.spun, 5u);
}

/// The details of all endings, as they are reported.
std::vector<std::string> reported(Board &board) {
    std::vector<std::string> details;
    for (; !board.ending.state.empty(); board.clear_ending())
        details.push_back(board.ending.detail);
    return details;
}

TEST(Endings, AllMarkersOfARoundAreReportedInTheirOrder) {
    Guest g;
    g.board.console_showed("prompt"); // the round goes on to its end, and other cores with it
    g.board.end({"marker", "workbegin", 0}, &g.core);
    g.board.console_showed("prompt");
    g.board.end({"exit", "m5 exit", 0}, &g.core);
    EXPECT_EQ(reported(g.board), (std::vector<std::string>{"prompt", "workbegin", "prompt", "m5 exit"}));
}

TEST(Endings, OfAnEpochAreReportedInTheOrderOfTheirMomentsWhicheverThreadComesFirst) {
    Guest g;
    g.board.detailed = true;
    g.board.end({"marker", "of no core"});
    g.board.end({"marker", "of the first core"}, &g.core);
    EXPECT_EQ(reported(g.board), (std::vector<std::string>{"of the first core", "of no core"}));
}

TEST(Endings, AnExitThatFollowsAMarkerIsReportedAfterIt) {
    Guest g;
    g.board.detailed = true;
    g.board.end({"marker", "workend", 0}, &g.core);
    g.board.end({"exit", "exit port", 3});
    EXPECT_EQ(g.board.ending.detail, "workend");
    g.board.clear_ending();
    EXPECT_EQ(g.board.ending.detail, "exit port");
    EXPECT_EQ(g.board.ending.status, 3);
    g.board.clear_ending();
    EXPECT_EQ(g.board.ending.state, "");
}

} // namespace
} // namespace moscope
