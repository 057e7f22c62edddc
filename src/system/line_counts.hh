// SPDX-License-Identifier: BSD-3-Clause
// What attribution counts for each line that was waited for. Transactions are noted as they end, in a journal of a few hundred, and
// counted when it is full or somebody wants to see the counts: a transaction meets a line that the host has not seen for
// long, while a loop over many of them can ask for the memory of those to come.
#pragma once

#include <array>
#include <cstdint>
#include <memory_resource>
#include <vector>

#include "base/types.hh"
#include "system/page_watch.hh"
#include "system/small_map.hh"

namespace moscope {

enum class MissClass : std::uint8_t { cold, capacity, upgrade, true_sharing, false_sharing, count };
inline constexpr unsigned kMissClasses = static_cast<unsigned>(MissClass::count);

class LineCounts {
  public:
    struct Waiter {
        Tick stall = 0, spin = 0;
        std::uint64_t count = 0;
        std::uint8_t offset = 0; ///< within the line, of the last access: an instruction has its field
    };
    struct Pair { ///< writer's instruction to waiter's
        Addr writer, waiter;
        bool operator==(const Pair &) const = default;
    };
    struct Code { ///< an instruction; of the kernel it is the same in all address spaces
        Addr pc, address_space;
        Code(Addr at, Addr space) : pc(at), address_space(static_cast<std::int64_t>(at) < 0 ? 0 : space) {}
        bool operator==(const Code &) const = default;
    };
    struct CodeHash {
        std::size_t operator()(const Code &c) const { return c.address_space * 0x9e3779b97f4a7c15 ^ c.pc; }
    };
    struct PairHash {
        std::size_t operator()(const Pair &p) const { return p.writer * 0x9e3779b97f4a7c15 ^ p.waiter; }
    };
    /// From where to where a line has moved, as one number: its supplier's type, its chip, the chip of the core that got it.
    using Way = std::uint64_t;
    static constexpr Way kNoWay = ~Way{0};
    static constexpr Way way(unsigned supplier, unsigned from, unsigned to) { return Way{supplier} << 32 | Way{from} << 16 | to; }
    struct Moved {
        Tick stall = 0;
        std::uint64_t count = 0;
    };
    template <class Key, class Value, class Hash = std::hash<Key>> using Map = SmallMap<Key, Value, Hash, std::pmr::polymorphic_allocator<>>;

    struct alignas(64) Counts {
        explicit Counts(std::pmr::memory_resource *room) : pairs(room), moves(room), writers(room) {}
        Tick stall = 0;
        std::uint64_t transfers = 0;
        std::uint64_t cores = 0; ///< that waited
        Addr va = 0;
        Addr address_space = 0;
        bool user = false, walk = false, fetch = false;
        MissClass store = MissClass::cold; ///< of the last transaction out of a core's buffer
        std::array<std::uint64_t, kMissClasses> by_class{};
        std::array<Tick, kMissClasses> stall_by_class{};
        Map<Pair, Waiter, PairHash> pairs;
        Map<Way, Moved> moves;
        Map<Addr, std::uint64_t> writers; ///< stores by instruction, at changes of hands
        Tick spin = 0;
        std::uint64_t turns = 0; ///< of spin loops
        PageSeen page; ///< at the first transaction at which it told anything
    };

    /// A transaction, or a wait for one that was noted before.
    struct alignas(64) Noted {
        Counts *counts;
        Tick exposed;
        Pair pair;
        Addr va, address_space;
        Way way;             ///< kNoWay: nobody sent data
        std::uint8_t offset; ///< within the line
        std::uint8_t core;
        MissClass miss;
        bool wait : 1, user : 1, walk : 1, fetch : 1;
        bool store : 1;         ///< out of a core's buffer
        bool changes_hands : 1; ///< `pair.writer` is the last writer's, another core's
    };

    LineCounts() { noted_.reserve(kNoted); }
    LineCounts(const LineCounts &) = delete;
    LineCounts &operator=(const LineCounts &) = delete;

    /// Of a line that has none; they last until reset().
    Counts *make();
    void note(const Noted &n) {
        noted_.push_back(n);
        if (noted_.size() == kNoted)
            count();
    }
    /// Counts what is noted.
    void count();
    /// Time in spin loops on a line.
    void spun(Counts &n, const Pair &pair, Addr address_space, unsigned offset, Tick time, std::uint64_t turns);
    /// Waiting by instruction.
    const auto &by_code() const { return by_code_; }
    void reset();

  private:
    static constexpr std::size_t kNoted = 384; ///< 24 KiB

    void count(const Noted &n);
    void fetch_ahead(std::size_t i) const;

    std::vector<Noted> noted_;
    SmallMap<Code, Waiter, CodeHash> by_code_;
    std::pmr::monotonic_buffer_resource room_{1 << 20}; ///< all counts and what they hold
};

} // namespace moscope
