// SPDX-License-Identifier: BSD-3-Clause
// Decoded blocks: straight-line runs of instructions within one physical page, found by physical address and decoding
// mode and shared by all cores that a host thread runs. A write to bytes of decoded code makes the blocks stale: each
// of their operations then leaves the block and looks it up again. No core runs stale code, not even one that writes to
// its own block. TLBs do not allow direct writes to pages that hold decoded code.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "base/types.hh"
#include "cpu/x86/core.hh"
#include "cpu/x86/decode/block_table.hh"
#include "cpu/x86/decode/code_map.hh"
#include "cpu/x86/decode/op.hh"

namespace moscope::x86 {

inline constexpr unsigned kLongest = 15; ///< bytes of an instruction

class TimingTable; // timed/op_timing.hh

/// The operations follow the header, so that most blocks are two or three host lines in a row.
struct alignas(32) Block {
    static constexpr unsigned kMaxOps = 48;
    std::uint64_t key = 0; ///< physical address << 2 | mode
    PhysAddr second;       ///< if `crosses`: physical address of the next page
    /// A guess at the next block and where cores remember it, for host prefetches only: the block may have been freed,
    /// and threads that run this block in parallel may mix two guesses.
    std::atomic<const void *> successor = nullptr;
    std::atomic<std::uint32_t> successor_jump = 0;
    std::atomic<bool> timed = false;    ///< its operations know their timing
    std::atomic<bool> ordinary = false; ///< it is timed, and does not cross pages
    std::uint8_t count = 0;             ///< instructions; there is one operation more, which ends the block
    bool stale : 1 = false;
    bool kept : 1 = false;    ///< lives until it is stale, so cores may remember it
    bool crosses : 1 = false; ///< its one instruction ends in the next page

    unsigned bytes() const { return ops()[count].start; }
    Op *ops() { return reinterpret_cast<Op *>(this + 1); }
    const Op *ops() const { return reinterpret_cast<const Op *>(this + 1); }

    /// `next`, at address `rip`, is run after this one.
    void followed_by(const Block *next, Addr rip) {
        if (successor.load(std::memory_order_relaxed) != next) {
            successor.store(next, std::memory_order_relaxed);
            successor_jump.store(Core::jump_number(rip), std::memory_order_relaxed);
        }
    }
    /// The core is about to run this block: has the host fetch what will likely be run after it, and returns the guess.
    const void *fetch_ahead(const Core &c) const {
        constexpr unsigned kAhead = 3 * kLineBytes; // the header and five operations
        const void *const next = successor.load(std::memory_order_relaxed);
        if (!next)
            return next;
        for (unsigned i = 0; i < kAhead; i += kLineBytes)
            __builtin_prefetch(static_cast<const std::byte *>(next) + i);
        __builtin_prefetch(&c.jumps[successor_jump.load(std::memory_order_relaxed)]);
        return next;
    }

    struct Free {
        void operator()(Block *) const;
    };
    using Ptr = std::unique_ptr<Block, Free>;
    /// A block with room for `operations`, all of them default-constructed.
    static Ptr make(std::size_t operations);

  private:
    Block() = default;
};
static_assert(sizeof(Block) == 32 && Block::kMaxOps < 256);

class Probes;   // probes.hh
class Promises; // isa.hh: the instructions that CPUID promises

class BlockCache {
  public:
    explicit BlockCache(const PhysMap &phys);
    ~BlockCache();

    /// The block at the core's rip, decoded if it is new; null: the fetch faulted, and Core::fault is set.
    /// single: one instruction only, not kept beyond this core's next call.
    /// `global` is set to whether the page is a global one.
    Block *find(Core &, bool single = false, bool *global = nullptr);

    /// The same in 64-bit mode, if the page's translation and the block are known: no page walk, no decoding and no
    /// fault. For a core that does not remember the block; it then does. Null: translation or block is not known, and
    /// nothing has happened.
    Block *find_at_hand(Core &);

    /// The block of this key, decoded if it is new, for a core that remembered it when a checkpoint was written.
    /// `second` is the page in which its last instruction ends, if that is another one. Null: no block can have been
    /// there.
    Block *recall(Core &, std::uint64_t key, PhysAddr second);

    /// A core that may run blocks of this cache. Direct writes of these cores to code pages are revoked.
    void add_core(Core &c) { cores_.push_back(&c); }

    /// Several caches, one per host thread. A thread looks blocks up in its own cache, while a core may remember blocks
    /// of any. All share the map of where code lies (code_map.hh).
    static void join(const std::vector<std::unique_ptr<BlockCache>> &all);
    CodeMap &map() { return *map_; }
    /// At a barrier: enters the code that threads decoded in parallel into the map, and drops the blocks of pages whose
    /// bytes another thread has changed meanwhile.
    void settle();

    /// True if writes to these bytes of one page must be reported (`written`).
    bool guarded_dram(const Core &c, Addr dram, unsigned size) const {
        return may_guard(c, dram) && map_->holds(c.chip, dram, size);
    }
    /// False: guarded_dram() is false for all bytes of this one's page.
    bool may_guard(const Core &c, Addr dram) const { return map_->marked(dram >> 12) || has_news(c); }
    /// False: guarded bytes lie only in pages that TLBs do not allow to be written directly.
    bool has_news(const Core &c) const { return map_->has_news(c.chip); }
    bool guarded(const Core &c, PhysAddr a, unsigned size) const {
        return guarded_dram(c, phys_.dram_address(a), size);
    }
    /// True if the page holds decoded code, according to the shared map.
    bool code_page(PhysAddr a) const { return code_dram(phys_.dram_address(a)); }
    bool code_dram(Addr dram) const { return map_->marked(dram >> 12); }
    /// [a, a + size) was written, within one page. No other thread runs cores meanwhile.
    void written(PhysAddr a, unsigned size);
    /// A store of `c` to [dram, dram + size), within one page, has left a buffer. With several logical processes, it
    /// takes effect on blocks at the next barrier.
    void written_late(const Core &c, Addr dram, unsigned size);
    /// Any amount of memory was written past the cores (DMA, the loader).
    void written_range(PhysAddr a, std::uint64_t size);
    /// Forgets all blocks. Only while no core is inside one.
    void clear();
    /// Frees what went stale. Only while no core is inside a block.
    void collect();
    /// Calls collect() on each cache, this one included, that has more than `most` stale blocks.
    void collect_over(std::size_t most);
    std::size_t garbage() const { return graveyard_.size(); }
    /// Detailed mode, before the block first runs there: gives its operations their timing.
    void time(Block &);
    const TimingTable &timings() const { return *timings_; }
    /// Uses these probes from now on, and forgets all blocks. Only while no core is inside one.
    void probe(std::shared_ptr<Probes> probes);
    Probes *probes() const { return probes_.get(); }
    /// The block of this key; null: none.
    Block *decoded_at(std::uint64_t key) const { return blocks_.find(key); }
    std::size_t decoded() const { return blocks_.size(); }

  private:
    class Decoder;
    Block *decode(Core &, std::uint64_t key, PhysAddr at, Addr va, unsigned limit, const PhysAddr *second = nullptr);
    void enter(const Core &, Block &, PhysAddr at, std::span<const std::byte> bytes);
    bool number_by_heads(Block &, std::span<const std::uint8_t> code);
    Block *found(const Core &, Block *);
    void drop(Block &);
    void free_all();
    void drop_page(Addr page);
    void guard(PhysAddr page);
    template <class F> void for_each_peer(F &&f) {
        for (BlockCache *b : peers_)
            f(*b);
    }

    const PhysMap &phys_;
    std::shared_ptr<TimingTable> timings_;
    std::shared_ptr<Probes> probes_;     ///< null: none; all caches have the same
    std::unique_ptr<Promises> promises_; ///< of the first core that decodes; all have the same model
    BlockTable blocks_;                  ///< owns them
    std::unordered_map<std::uint64_t, std::vector<Block *>> pages_; ///< blocks by page
    std::shared_ptr<CodeMap> map_;
    std::vector<BlockCache *> peers_;
    std::vector<Block *> outdated_; ///< owned, but no longer found, because their second page is another one now
    struct Fresh {
        const Block *block;
        unsigned chip; ///< the chip that decoded it
        CodeMap::News news;
    };
    std::vector<Fresh> fresh_; ///< decoded since the last barrier
    std::vector<Block::Ptr> graveyard_;
    std::vector<Block::Ptr> single_; ///< by core: the last one that was not kept
    std::vector<Core *> cores_;
};

} // namespace moscope::x86
