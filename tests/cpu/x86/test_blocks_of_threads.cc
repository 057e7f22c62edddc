// SPDX-License-Identifier: BSD-3-Clause
// Decoded code of cores that different host threads run: each thread has a cache of its own, and a write by a core of one is
// known to the other, at once or, while threads run beside each other, when they have come to rest.
#include <gtest/gtest.h>

#include "cpu/x86/flat_machine.hh"

namespace moscope::x86 {
namespace {

constexpr Addr kCode = 0x1000;

struct TwoCaches : ::testing::Test {
    TwoCaches() {
        caches.push_back(std::make_unique<BlockCache>(m.phys));
        caches.push_back(std::make_unique<BlockCache>(m.phys));
        BlockCache::join(caches);
        for (unsigned i = 0; i < 2; ++i) {
            cores.push_back(std::make_unique<Core>(i, m, m.phys, *caches[i], m.model));
            caches[i]->add_core(*cores[i]);
        }
        m.long_mode();
        for (auto &c : cores) {
            static_cast<State &>(*c) = m.core;
            c->mode_changed();
        }
        // mov eax, 1 ; hlt
        for (unsigned i = 0; const int b : {0xb8, 1, 0, 0, 0, 0xf4})
            m.memory[kCode + i++] = static_cast<std::byte>(b);
    }
    std::uint64_t answer(unsigned core) {
        Core &c = *cores[core];
        c.rip = kCode;
        c.r[rax] = 0;
        c.halted = false;
        EXPECT_EQ(c.run(10), Exit::halt);
        return c.r[rax];
    }
    /// What a store to the instruction's operand does.
    void write(unsigned core, int value) {
        m.memory[kCode + 1] = static_cast<std::byte>(value);
        if (caches[core]->guarded(PhysAddr(kCode + 1)))
            caches[core]->written(PhysAddr(kCode + 1), 1);
    }
    void beside(bool yes) {
        for (auto &c : caches)
            c->run_beside_others(yes);
    }
    void at_rest() {
        for (auto &c : caches)
            c->tell_peers();
    }

    test::FlatMachine m;
    std::vector<std::unique_ptr<BlockCache>> caches;
    std::vector<std::unique_ptr<Core>> cores;
};

TEST_F(TwoCaches, AWriteIsKnownToBothAtOnceWhileCoresTakeTurns) {
    EXPECT_EQ(answer(0), 1u);
    EXPECT_EQ(answer(1), 1u);
    write(1, 2); // decoded by both
    EXPECT_EQ(answer(0), 2u);
    write(1, 3); // by the other alone
    EXPECT_EQ(answer(1), 3u);
    EXPECT_EQ(answer(0), 3u);
}

TEST_F(TwoCaches, BesideEachOtherTheOtherLearnsOfAWriteWhenAllRest) {
    unsigned news = 0;
    for (auto &c : caches)
        c->on_news = [&] { ++news; };
    EXPECT_EQ(answer(0), 1u);
    beside(true);
    write(1, 2);
    EXPECT_EQ(news, 1u);
    at_rest();
    EXPECT_EQ(answer(0), 2u);
    EXPECT_EQ(news, 2u) << "it was decoded anew";
}

TEST_F(TwoCaches, CodeThatWasWrittenWhileItWasBeingDecodedIsDecodedAgain) {
    beside(true);
    EXPECT_EQ(answer(0), 1u);
    m.memory[kCode + 1] = std::byte{5}; // by a thread that could not know yet that there is code
    at_rest();
    EXPECT_EQ(answer(0), 5u);
}

TEST_F(TwoCaches, APageWithoutCodeIsNoLongerGuarded) {
    EXPECT_EQ(answer(0), 1u);
    beside(true);
    EXPECT_TRUE(caches[1]->guarded(PhysAddr(kCode)));
    write(1, 2);
    at_rest();
    EXPECT_FALSE(caches[0]->guarded(PhysAddr(kCode)));
    EXPECT_FALSE(caches[1]->guarded(PhysAddr(kCode)));
}

} // namespace
} // namespace moscope::x86
