// SPDX-License-Identifier: BSD-3-Clause
// The counters of attribution, against std::map, from one key to thousands.
#include <gtest/gtest.h>

#include <map>
#include <memory_resource>

#include "base/rng.hh"
#include "base/types.hh"
#include "system/small_map.hh"

using namespace moscope;

TEST(SmallMap, CountsAsAMapDoesWhateverTheNumberOfKeys) {
    Rng rng(23);
    for (const unsigned keys : {1u, 7u, 8u, 9u, 16u, 17u, 33u, 5000u}) {
        SmallMap<Addr, std::uint64_t> map;
        std::map<Addr, std::uint64_t> model;
        for (int i = 0; i < 20000; ++i) {
            const Addr key = 0xffffffff81000000 + 16 * rng.below(keys);
            const auto n = rng.below(100);
            map[key] += n;
            model[key] += n;
        }
        ASSERT_EQ(map.size(), model.size()) << keys;
        for (const auto &[key, value] : map)
            ASSERT_EQ(value, model.at(key)) << keys;
    }
}

TEST(SmallMap, KeysStandInTheOrderOfTheirComingAndAreGoneWhenCleared) {
    SmallMap<Addr, int> map;
    for (Addr k = 100; k-- > 0;)
        map[k] = 1;
    Addr expected = 100;
    for (const auto &item : map)
        EXPECT_EQ(item.key, --expected);
    map.clear();
    EXPECT_EQ(map.size(), 0u);
    EXPECT_EQ(map[5], 0);
}

TEST(SmallMap, TakesItsMemoryFromWhereItIsTold) {
    std::byte room[1 << 16];
    std::pmr::monotonic_buffer_resource arena(room, sizeof room, std::pmr::null_memory_resource());
    SmallMap<Addr, int, std::hash<Addr>, std::pmr::polymorphic_allocator<>> map(&arena);
    for (Addr k = 0; k < 500; ++k)
        map[k] = static_cast<int>(k);
    for (Addr k = 0; k < 500; ++k) {
        map.prefetch(k);
        EXPECT_EQ(map[k], static_cast<int>(k));
    }
    EXPECT_EQ(map.size(), 500u);
}
