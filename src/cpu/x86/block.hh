// SPDX-License-Identifier: BSD-3-Clause
// Decoded blocks: straight runs of instructions within one physical page, found by physical address and decoding
// mode and shared by all cores. A write to bytes that a block was decoded from turns the block's instructions
// into one that leaves it and looks again, so that no core, not even the writer in the middle of the block, runs
// stale code. Pages that hold decoded code are taken out of all TLBs' direct writes.
#pragma once

#include <array>
#include <bitset>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "base/types.hh"
#include "cpu/x86/block_table.hh"
#include "cpu/x86/core.hh"
#include "cpu/x86/op.hh"

namespace moscope::x86 {

struct OpTiming; // timed/op_timing.hh

struct Block {
    ~Block();
    static constexpr unsigned kMaxOps = 48;
    std::uint64_t key = 0;     ///< physical address << 2 | mode
    std::uint32_t bytes = 0;
    std::uint16_t count = 0;   ///< instructions; ops holds one more, which ends the block
    bool stale = false;
    bool kept = false;         ///< lives on until it is stale: may be remembered
    bool crosses = false;      ///< its one instruction ends in the next page ...
    PhysAddr second;           ///< ... which is here
    std::unique_ptr<Op[]> ops;
    std::unique_ptr<OpTiming[]> timing; ///< detailed mode, when it first runs there
};

class Promises; // isa.hh: the instructions that CPUID promises

class BlockCache {
  public:
    explicit BlockCache(const PhysMap &phys);
    ~BlockCache();

    /// The block at the core's rip, decoded if need be; null: the fetch faulted, Core::fault says how.
    /// single: one instruction only, not kept beyond this core's next call.
    /// `global` is told whether the page is a global one.
    Block *find(Core &, bool single = false, bool *global = nullptr);

    /// The block of this key, for a core that had it without looking; `second` is where its last instruction ends, if that
    /// is in another page. Null: no block can have been there.
    Block *recall(Core &, std::uint64_t key, PhysAddr second);

    /// All cores, whose direct writes must be taken away from code pages.
    void add_core(Core &c) { cores_.push_back(&c); }

    /// True if the page holds decoded code: writes to it have to be told of.
    bool guarded(PhysAddr page) const {
        const std::uint64_t d = phys_.dram_address(page) >> 12;
        return d / 64 < code_pages_.size() && (code_pages_[d / 64] >> d % 64 & 1);
    }
    /// [a, a + size) was written, within one page.
    void written(PhysAddr a, unsigned size);
    /// Any amount of memory was written past the cores (DMA, the loader).
    void written_range(PhysAddr a, std::uint64_t size);
    /// Forgets all blocks. Only while no core is inside one.
    void clear();
    /// Frees what went stale. Only while no core is inside a block.
    void collect();
    std::size_t garbage() const { return graveyard_.size(); }
    std::size_t decoded() const { return blocks_.size(); }

  private:
    struct Page {
        std::bitset<64> lines;      ///< lines that hold code
        std::vector<Block *> blocks;
    };
    Block *decode(Core &, std::uint64_t key, PhysAddr at, Addr va, unsigned limit, const PhysAddr *second = nullptr);
    void enter(Block &, PhysAddr at, std::uint64_t bytes);
    void drop(Block &);
    void drop_page(Addr page);

    const PhysMap &phys_;
    std::unique_ptr<Promises> promises_; ///< of the first core that decodes; all have the same model
    BlockTable blocks_; ///< owns them
    void mark(Addr page, bool code);
    std::unordered_map<std::uint64_t, Page> pages_;
    std::vector<std::uint64_t> code_pages_; ///< a bit for each page of DRAM: is in pages_
    std::vector<std::unique_ptr<Block>> graveyard_;
    std::vector<std::unique_ptr<Block>> single_; ///< by core: the last one that was not kept
    std::vector<Core *> cores_;
};

} // namespace moscope::x86
