// SPDX-License-Identifier: BSD-3-Clause
// Fibers keep their stack across switches, pass exceptions to the resumer, and clean up when dropped half way.
#include <gtest/gtest.h>

#ifdef MOSCOPE_ASAN
#include <sanitizer/asan_interface.h>
#endif

#include <stdexcept>
#include <vector>

#include "sim/fiber.hh"

using namespace moscope;

namespace {

TEST(Fiber, LocalsSurviveAndControlAlternates) {
    std::vector<int> order;
    Fiber *self = nullptr;
    Fiber f([&] {
        for (int i = 0; i < 3; ++i) {
            order.push_back(i);
            self->yield();
        }
    });
    self = &f;
    for (int i = 0; i < 3; ++i) {
        f.resume();
        order.push_back(10 + i);
        EXPECT_FALSE(f.finished());
    }
    f.resume();
    EXPECT_TRUE(f.finished());
    EXPECT_EQ(order, (std::vector<int>{0, 10, 1, 11, 2, 12}));
}

TEST(Fiber, AnExceptionOfTheBodyReachesTheResumer) {
    Fiber *self = nullptr;
    Fiber f([&] {
        self->yield();
        throw std::runtime_error("inside");
    });
    self = &f;
    f.resume();
    EXPECT_THROW(f.resume(), std::runtime_error);
    EXPECT_TRUE(f.finished());
}

TEST(Fiber, DroppingASuspendedFiberDestroysWhatLivesOnItsStack) {
    bool destroyed = false;
    struct Mark {
        bool &flag;
        ~Mark() { flag = true; }
    };
    {
        Fiber *self = nullptr;
        Fiber f([&] {
            Mark m{destroyed};
            self->yield();
        });
        self = &f;
        f.resume();
        EXPECT_FALSE(destroyed);
    }
    EXPECT_TRUE(destroyed);
}

TEST(Fiber, OneThatNeverRanIsDroppedWithoutRunning) {
    bool ran = false;
    {
        Fiber f([&] { ran = true; });
    }
    EXPECT_FALSE(ran);
}

TEST(Fiber, ManyFibersSwitchIndependently) {
    std::vector<std::unique_ptr<Fiber>> fibers(48);
    std::vector<int> count(48, 0);
    for (std::size_t i = 0; i < 48; ++i)
        fibers[i] = std::make_unique<Fiber>([&, i] {
            for (int k = 0; k < 1000; ++k) {
                ++count[i];
                fibers[i]->yield();
            }
        });
    for (int k = 0; k < 1000; ++k)
        for (auto &f : fibers)
            f->resume();
    for (int c : count)
        EXPECT_EQ(c, 1000);
}

#ifdef MOSCOPE_ASAN
// Found by the fuzzing test: guest memory came to lie where a fiber's stack had been, and a write to it was taken for one
// beyond a variable of that stack.
TEST(Fiber, ItsStackLeavesNoMarksOfTheSanitizer) {
    std::uintptr_t inside = 0;
    {
        Fiber *self = nullptr;
        Fiber f([&] {
            volatile char here = 0;
            inside = reinterpret_cast<std::uintptr_t>(&here);
            self->yield();
        });
        self = &f;
        f.resume();
    }
    const std::uintptr_t page_end = (inside | 4095) + 1;
    EXPECT_EQ(__asan_region_is_poisoned(reinterpret_cast<void *>(inside), page_end - inside), nullptr);
}
#endif

} // namespace
