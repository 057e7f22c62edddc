// SPDX-License-Identifier: BSD-3-Clause
// Arrays, TBE tables, timers and queues of the protocol runtime, against simple models.
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <vector>

#include "base/rng.hh"
#include "mem/ruby/runtime/cache_memory.hh"
#include "mem/ruby/runtime/foreign/located.hh"
#include "mem/ruby/runtime/perfect_cache_memory.hh"
#include "mem/ruby/runtime/tbe_table.hh"
#include "mem/ruby/runtime/timed_queue.hh"
#include "mem/ruby/runtime/timer_table.hh"

using namespace moscope;
using namespace moscope::ruby;

namespace {

struct Entry : AbstractCacheEntry {};

Addr line(unsigned n) { return Addr{n} * kLineBytes; }

struct ClockedQueue {
    EventQueue q;
    struct Tickle : Component {
        explicit Tickle(EventQueue &queue) : Component(queue, "tickle", [](Component &, Tick) {}) {}
    } t{q};
    void to(Tick when) {
        t.schedule(when);
        q.run();
    }
};

TEST(CacheMemory, LruReplacesTheLineTouchedLongestAgo) {
    ClockedQueue c;
    CacheMemory cache({"c", 1, 4, "lru"}, c.q, 1);
    for (unsigned i = 0; i < 4; ++i) {
        c.to(10 + i);
        EXPECT_TRUE(cache.cacheAvail(line(i)));
        cache.allocate(line(i), NewEntry<Entry>{});
    }
    EXPECT_FALSE(cache.cacheAvail(line(9)));
    EXPECT_EQ(cache.cacheProbe(line(9)), line(0));
    c.to(20);
    cache.setMRU(line(0));
    EXPECT_EQ(cache.cacheProbe(line(9)), line(1));
}

/// An array of two lines; the first, placed at tick 1, has the stamp `stamp`; the second was placed at tick 2.
struct TwoLines : ClockedQueue {
    explicit TwoLines(const char *policy) : cache({"c", 1, 2, policy}, q, 1) {
        to(1);
        stamp = cache.stamp(cache.allocate(line(0), NewEntry<Entry>{})->slot);
        to(2);
        cache.allocate(line(1), NewEntry<Entry>{});
    }
    CacheMemory cache;
    Tick *stamp = nullptr;
};

TEST(CacheMemory, AStampWrittenByAnInlineHitCountsAsATouch) {
    TwoLines c("lru");
    CacheMemory &cache = c.cache;
    *c.stamp = 3;
    EXPECT_EQ(cache.cacheProbe(line(9)), line(1));
}

TEST(CacheMemory, FifoIgnoresHits) {
    TwoLines c("fifo");
    CacheMemory &cache = c.cache;
    c.to(3);
    cache.setMRU(line(0));
    *c.stamp = 9;
    EXPECT_EQ(cache.cacheProbe(line(9)), line(0));
}

TEST(CacheMemory, TreePlruNeverReplacesTheLineTouchedLastAndOffersNoInlineStamp) {
    ClockedQueue c;
    CacheMemory cache({"c", 1, 8, "tree_plru"}, c.q, 1);
    for (unsigned i = 0; i < 8; ++i)
        EXPECT_EQ(cache.stamp(cache.allocate(line(i), NewEntry<Entry>{})->slot), nullptr);
    Rng rng(5);
    for (int i = 0; i < 1000; ++i) {
        const auto touched = line(static_cast<unsigned>(rng.below(8)));
        cache.setMRU(touched);
        EXPECT_NE(cache.cacheProbe(line(99)), touched);
    }
}

/// Random use of an array against a map of its lines: what was looked up stays true until lines come and leave.
void agrees_with_a_map(unsigned sets, unsigned ways, const char *policy) {
    SCOPED_TRACE(std::to_string(sets) + " sets of " + std::to_string(ways) + ", " + policy);
    ClockedQueue c;
    CacheMemory cache({"c", sets, ways, policy}, c.q, 1);
    std::map<Addr, AbstractCacheEntry *> model;
    std::map<Addr, unsigned> in_set;
    const auto remove = [&](Addr a, Addr set) {
        cache.deallocate(a);
        model.erase(a);
        --in_set[set];
    };
    Rng rng(17);
    for (int i = 0; i < 50000; ++i) {
        const Addr a = line(static_cast<unsigned>(rng.below(5 * sets * ways)));
        const Addr set = (a >> kLineBits) % sets;
        if (rng.below(2)) {
            ASSERT_EQ(cache.lookup(a), model.count(a) ? model[a] : nullptr);
        }
        ASSERT_EQ(cache.cacheAvail(a), model.count(a) || in_set[set] < ways);
        if (model.count(a)) {
            if (rng.below(2))
                remove(a, set);
        } else if (in_set[set] < ways) {
            model[a] = cache.allocate(a, NewEntry<Entry>{});
            ++in_set[set];
        } else {
            const Addr victim = cache.cacheProbe(a);
            ASSERT_TRUE(model.count(victim));
            ASSERT_EQ((victim >> kLineBits) % sets, set);
            ASSERT_EQ(cache.lookup(victim), model[victim]);
            if (rng.below(2))
                continue;
            remove(victim, set);
            ASSERT_EQ(cache.lookup(victim), nullptr);
            ASSERT_TRUE(cache.cacheAvail(a));
            ASSERT_EQ(cache.lookup(victim), nullptr);
            const Addr placed = rng.below(2) ? a : victim;
            model[placed] = cache.allocate(placed, NewEntry<Entry>{});
            ++in_set[set];
            ASSERT_EQ(cache.lookup(victim), placed == victim ? model[victim] : nullptr);
        }
    }
}

TEST(CacheMemory, AgreesWithAMapOverRandomOperations) {
    agrees_with_a_map(13, 3, "random");
    agrees_with_a_map(16, 2, "lru");
    agrees_with_a_map(4, 16, "lru");
    agrees_with_a_map(3, 40, "fifo");
}

TEST(PerfectCacheMemory, AgreesWithAMapOverRandomOperations) {
    struct Held : AbstractCacheEntry {
        std::uint64_t value = 0;
    };
    PerfectCacheMemory<Held> table;
    std::map<Addr, std::uint64_t> model;
    Rng rng(23);
    for (std::uint64_t i = 1; i < 50000; ++i) {
        const Addr a = line(static_cast<unsigned>(rng.below(3000)));
        ASSERT_EQ(table.isTagPresent(a), model.count(a) == 1);
        if (!model.count(a)) {
            table.allocate(a);
            table.lookup(a)->value = model[a] = i;
        } else if (rng.below(2)) {
            table.deallocate(a);
            model.erase(a);
        } else {
            ASSERT_EQ(table.lookup(a)->value, model[a]);
        }
    }
    ASSERT_EQ(table.count(), model.size());
}

/// Random use of an array against a list of its lines, the one to be replaced first in front. From operation
/// `stamps_from` on, touches are written as inline hits write them.
void compare_with_a_list(unsigned ways, const std::string &policy, int stamps_from) {
    ClockedQueue c;
    constexpr unsigned kSets = 4;
    CacheMemory cache({"c", kSets, ways, policy}, c.q, 1);
    std::vector<Addr> model[kSets];
    Rng rng(ways);
    for (int i = 0; i < 20000; ++i) {
        c.to(10 + i);
        const Addr a = line(static_cast<unsigned>(rng.below(kSets * (ways + 3))));
        auto &set = model[(a >> kLineBits) % kSets];
        const auto at = std::find(set.begin(), set.end(), a);
        auto *e = cache.lookup(a);
        ASSERT_EQ(e != nullptr, at != set.end());
        ASSERT_EQ(cache.cacheAvail(a), e || set.size() < ways);
        const auto what = rng.below(8);
        if (e && what == 0) {
            cache.deallocate(a);
            set.erase(at);
        } else if (e) {
            if (i >= stamps_from)
                *cache.stamp(e->slot) = c.q.now();
            else if (what == 1)
                cache.setMRU(a);
            else
                cache.setMRU(e);
            if (policy == "lru")
                std::rotate(at, at + 1, set.end());
        } else {
            if (set.size() == ways) {
                ASSERT_EQ(cache.cacheProbe(a), set.front()) << ways << " ways, operation " << i;
                cache.deallocate(set.front());
                set.erase(set.begin());
            }
            ASSERT_EQ(cache.allocate(a, NewEntry<Entry>{})->m_Address, a);
            set.push_back(a);
        }
    }
    unsigned held = 0;
    cache.for_each([&](AbstractCacheEntry *) { ++held; });
    EXPECT_EQ(held, model[0].size() + model[1].size() + model[2].size() + model[3].size());
}

TEST(CacheMemory, ReplacesInTheOrderOfAListWhateverTheWays) {
    for (unsigned ways : {1u, 2u, 4u, 5u, 8u, 12u, 15u, 16u, 17u, 31u, 32u, 33u, 40u, 48u, 64u, 127u, 128u, 129u, 200u})
        for (const char *policy : {"lru", "fifo"})
            compare_with_a_list(ways, policy, 1 << 30);
}

TEST(CacheMemory, TouchingAnEntryOfAnotherArrayOrAFreedOneChangesNothing) {
    ClockedQueue c;
    for (unsigned ways : {2u, 8u}) {
        CacheMemory cache({"c", 1, ways, "lru"}, c.q, 1), other({"d", 1, ways, "lru"}, c.q, 1);
        for (unsigned i = 0; i < ways; ++i) {
            c.to(c.q.now() + 1);
            cache.allocate(line(i), NewEntry<Entry>{});
        }
        c.to(c.q.now() + 1);
        cache.setMRU(other.allocate(line(0), NewEntry<Entry>{}));
        EXPECT_EQ(cache.cacheProbe(line(99)), line(0));
        auto *gone = cache.lookup(line(1));
        cache.deallocate(line(1));
        cache.setMRU(gone);
        EXPECT_TRUE(cache.cacheAvail(line(99)));
    }
}

TEST(CacheMemory, KeepsTheOrderOfUseWhenInlineHitsBeginToWriteStamps) {
    for (unsigned ways : {2u, 8u, 16u, 48u})
        compare_with_a_list(ways, "lru", 7000);
}

TEST(TbeTable, AgreesWithAMapAndRefusesWhatAProtocolMustNotDo) {
    struct Tbe {
        int value = 7;
    };
    constexpr unsigned kCapacity = 40; // three blocks of entries, the last of which is smaller
    TBETable<Tbe> table(kCapacity);
    struct Held {
        int value;
        Tbe *at;
    };
    std::map<Addr, Held> model;
    Rng rng(19);
    for (int i = 0; i < 100000; ++i) {
        const Addr a = line(static_cast<unsigned>(rng.below(128)) * 512);
        Tbe *t = table.lookup(a);
        ASSERT_EQ(t != nullptr, model.count(a) == 1);
        if (t) {
            ASSERT_EQ(t, model[a].at); // entries do not move
            ASSERT_EQ(t->value, model[a].value);
            table.deallocate(a);
            model.erase(a);
        } else if (table.areNSlotsAvailable(1)) {
            table.allocate(a);
            ASSERT_EQ(table.lookup(a)->value, 7); // a fresh entry, whatever the cell held before
            table.lookup(a)->value = i;
            model[a] = {i, table.lookup(a)};
        } else {
            ASSERT_EQ(model.size(), kCapacity);
            EXPECT_THROW(table.allocate(a), ProtocolError);
            const Addr any = model.begin()->first;
            EXPECT_THROW(table.allocate(any), ProtocolError);
            table.deallocate(any);
            model.erase(any);
        }
        ASSERT_EQ(table.count(), model.size());
    }
    EXPECT_THROW(table.deallocate(line(12345)), ProtocolError);
}

TEST(TimedQueue, KeepsTimeOrderAndTheOrderOfArrivalAmongEquals) {
    TimedQueue<int> q;
    std::multimap<Tick, int> model;
    Rng rng(23);
    int next = 0;
    for (int i = 0; i < 50000; ++i) {
        if (rng.below(2) || q.empty()) {
            const auto t = static_cast<Tick>(rng.below(40));
            q.insert(t, next);
            model.emplace(t, next++);
        } else {
            ASSERT_EQ(q.front().tick, model.begin()->first);
            ASSERT_EQ(q.front().item, model.begin()->second);
            q.pop();
            model.erase(model.begin());
        }
    }
}

TEST(TimerTable, GivesAddressesInTheOrderOfTheirTimes) {
    TimerTable t;
    t.set(line(1), 30);
    t.set(line(2), 10);
    t.set(line(3), 20);
    EXPECT_THROW(t.set(line(3), 5), ProtocolError);
    EXPECT_FALSE(t.isReady(9));
    EXPECT_TRUE(t.isReady(10));
    EXPECT_EQ(t.nextAddress(), line(2));
    t.unset(line(2));
    EXPECT_EQ(t.nextAddress(), line(3));
    EXPECT_THROW(t.unset(line(2)), ProtocolError);
}

TEST(LocatedController, BytesBeyondALineAreErrors) {
    WriteMask mask;
    set_mask(mask, 60, 4);
    EXPECT_TRUE(get_mask(mask, 60, 4));
    EXPECT_FALSE(get_mask(mask, 59, 5));
    EXPECT_THROW(set_mask(mask, 60, 5), ProtocolError);
    EXPECT_THROW(get_mask(mask, 64, 1), ProtocolError);
    EXPECT_THROW(set_mask(mask, -1, 2), ProtocolError);
    DataBlock from, to;
    copy_partial(to, from, 64, 0);
    EXPECT_THROW(copy_partial(to, from, 0, 65), ProtocolError);
    EXPECT_THROW(copy_partial(to, from, 8, -1), ProtocolError);
}

TEST(LocatedController, DivisionsThatCxxDoesNotDefineAreErrors) {
    const int low = std::numeric_limits<int>::min();
    EXPECT_THROW(divide(7, 0), ProtocolError);
    EXPECT_THROW(divide(low, -1), ProtocolError);
    EXPECT_THROW(remainder_of(low, -1), ProtocolError);
    EXPECT_EQ(divide(low, 1), low);
    EXPECT_EQ(divide(low + 1, -1), std::numeric_limits<int>::max());
    EXPECT_EQ(divide(std::int64_t{low}, -1), -std::int64_t{low});
    EXPECT_EQ(remainder_of(-7, 4), -3);
}

TEST(LocatedController, ShiftsThatCxxDoesNotDefineAreErrors) {
    EXPECT_EQ(shift_left(1, 31), std::numeric_limits<int>::min());
    EXPECT_THROW(shift_left(1, 32), ProtocolError);
    EXPECT_THROW(shift_right(1, -1), ProtocolError);
    EXPECT_EQ(shift_right(std::int64_t{-8}, 63), -1);
    EXPECT_THROW(shift_right(std::int64_t{-8}, std::uint64_t{64}), ProtocolError);
    EXPECT_EQ(shift_left(true, 8), 256);
}

TEST(LocatedController, BitsBeyondAnAddressAreErrors) {
    EXPECT_EQ(select_bits(0xabcd, 4, 11), 0xbcu);
    EXPECT_EQ(select_bits(~Addr{0}, 0, 63), ~Addr{0});
    EXPECT_THROW(select_bits(0, 6, 5), ProtocolError);
    EXPECT_THROW(select_bits(0, 0, 64), ProtocolError);
    EXPECT_THROW(select_bits(0, -1, 5), ProtocolError);
    EXPECT_EQ(mask_bits(0xabcd, 0), 0xabcdu);
    EXPECT_EQ(mask_bits(~Addr{0}, 63), Addr{1} << 63);
    EXPECT_THROW(mask_bits(0xabcd, 64), ProtocolError);
    EXPECT_THROW(mask_bits(0xabcd, -1), ProtocolError);
}

} // namespace
