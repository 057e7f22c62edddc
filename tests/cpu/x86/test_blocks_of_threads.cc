// SPDX-License-Identifier: BSD-3-Clause
// Decoded code where different host threads run the cores. Each thread has its own block cache, and a core may remember
// blocks of any cache. A write to decoded code drops it from all caches. While chips run side by side, the others learn
// of newly decoded code only at the barrier.
#include <gtest/gtest.h>

#include "cpu/x86/flat_machine.hh"

namespace moscope::x86 {
namespace {

constexpr Addr kCode = 0x1000, kOther = 0x1fc0; ///< another line of the same page

struct TwoCaches : ::testing::Test {
    TwoCaches() {
        for (unsigned i = 0; i < 2; ++i)
            caches.push_back(std::make_unique<BlockCache>(m.phys));
        BlockCache::join(caches);
        map().set_chips(2);
        for (unsigned i = 0; i < 2; ++i) {
            cores.push_back(std::make_unique<Core>(i, m, m.phys, *caches[i], m.model));
            cores[i]->chip = i;
            for (auto &c : caches)
                c->add_core(*cores[i]);
        }
        m.long_mode();
        for (auto &c : cores) {
            static_cast<State &>(*c) = m.core;
            c->mode_changed();
        }
        // mov eax, 1 ; hlt
        for (const Addr at : {kCode, kOther})
            for (unsigned i = 0; const int b : {0xb8, 1, 0, 0, 0, 0xf4})
                m.memory[at + i++] = static_cast<std::byte>(b);
    }
    CodeMap &map() { return caches[0]->map(); }
    std::uint64_t answer(unsigned core, Addr at = kCode) {
        Core &c = *cores[core];
        c.rip = at;
        c.r[rax] = 0;
        c.halted = false;
        EXPECT_EQ(c.run(10), Exit::halt);
        return c.r[rax];
    }
    bool guarded(unsigned core, Addr at = kCode) {
        return cores[core]->blocks->guarded(*cores[core], PhysAddr(at + 1), 1);
    }
    /// What a store to the instruction's operand does.
    bool write(unsigned core, int value, Addr at = kCode) {
        m.memory[at + 1] = static_cast<std::byte>(value);
        if (!guarded(core, at))
            return false;
        cores[core]->blocks->written(PhysAddr(at + 1), 1);
        return true;
    }
    void at_rest() { caches[0]->settle(); }

    test::FlatMachine m;
    std::vector<std::unique_ptr<BlockCache>> caches;
    std::vector<std::unique_ptr<Core>> cores;
};

TEST_F(TwoCaches, WhileCoresTakeTurnsAWriteDropsCodeFromBothAtOnce) {
    EXPECT_EQ(answer(0), 1u);
    EXPECT_EQ(answer(1), 1u);
    EXPECT_TRUE(write(1, 2)); // decoded by both
    EXPECT_EQ(answer(0), 2u);
    EXPECT_TRUE(write(1, 3)); // by the other alone
    EXPECT_EQ(answer(1), 3u);
    EXPECT_EQ(answer(0), 3u);
}

TEST_F(TwoCaches, WhileChipsRunSideBySideCodeIsGuardedOnItsChipAtOnceAndOnOthersAtTheBarrier) {
    unsigned news = 0;
    map().on_news = [&] { ++news; };
    map().run_side_by_side(true);
    EXPECT_EQ(answer(0), 1u);
    EXPECT_EQ(news, 1u);
    EXPECT_TRUE(guarded(0));
    EXPECT_FALSE(guarded(1)) << "whether it knew would depend on which thread came first";
    EXPECT_FALSE(guarded(0, kOther)) << "another line";
    at_rest();
    EXPECT_TRUE(guarded(1));
    EXPECT_TRUE(write(1, 2));
    EXPECT_EQ(answer(0), 2u);
    EXPECT_EQ(news, 2u) << "it was decoded anew";
}

TEST_F(TwoCaches, AChipThatUsesCodeDecodedByAnotherChipOfItsThreadGuardsItToo) {
    cores[1]->blocks = caches[0].get();
    map().run_side_by_side(true);
    EXPECT_EQ(answer(0), 1u);
    EXPECT_FALSE(guarded(1));
    EXPECT_EQ(answer(1), 1u);
    EXPECT_EQ(caches[0]->decoded(), 1u);
    EXPECT_TRUE(guarded(1)) << "as if another thread ran it, which would have to decode";
}

TEST_F(TwoCaches, CodeThatWasWrittenWhileItWasBeingDecodedIsDecodedAgain) {
    map().run_side_by_side(true);
    EXPECT_EQ(answer(0), 1u);
    EXPECT_FALSE(write(1, 5)); // by a thread that cannot know yet that this is code
    at_rest();
    EXPECT_EQ(answer(0), 5u);
}

TEST_F(TwoCaches, ACoreThatMovesToAnotherThreadKeepsTheCodeDecodedByTheFirst) {
    EXPECT_EQ(answer(0), 1u);
    cores[0]->blocks = caches[1].get();
    EXPECT_EQ(answer(0), 1u);
    EXPECT_EQ(caches[1]->decoded(), 0u) << "it has it from the other's cache";
    EXPECT_TRUE(write(1, 7));
    EXPECT_EQ(answer(0), 7u);
    EXPECT_EQ(caches[1]->decoded(), 1u) << "by whom the core belongs to now";
    EXPECT_EQ(caches[0]->decoded(), 0u);
    caches[1]->collect_over(0); // frees in both caches: neither may keep a pointer to a freed block
    EXPECT_EQ(answer(0), 7u);
}

TEST_F(TwoCaches, AWriteDropsAllCodeOfItsPageFromBothWhicheverLineEachHasDecoded) {
    EXPECT_EQ(answer(0), 1u);
    EXPECT_EQ(answer(1, kOther), 1u);
    EXPECT_TRUE(write(0, 3, kOther)) << "the writer's own cache has nothing of this line";
    EXPECT_EQ(caches[0]->decoded() + caches[1]->decoded(), 0u);
    EXPECT_EQ(answer(1, kOther), 3u);
}

TEST_F(TwoCaches, APageWithoutCodeIsNoLongerGuarded) {
    EXPECT_EQ(answer(0), 1u);
    EXPECT_TRUE(guarded(1));
    EXPECT_TRUE(write(1, 2));
    EXPECT_FALSE(guarded(0));
    EXPECT_FALSE(guarded(1));
    EXPECT_FALSE(caches[0]->code_page(PhysAddr(kCode)));
}

} // namespace
} // namespace moscope::x86
