// SPDX-License-Identifier: BSD-3-Clause
// Probes: instructions of guest programs, mostly the first ones of functions, at which the platform is called
// (Platform::probed). A probe is identified by the page of the program's file that holds the instruction, and by the
// offset in this page. It therefore works in every process that maps the page, at any address, and can be set before
// the process exists: programs and shared libraries are mapped in whole pages, and position-independent code is not
// changed when it is loaded.
//
// Whether an instruction is probed is decided when it is decoded: it gets another function, which calls the original
// one and then the platform. Instructions without a probe cost nothing, blocks are as long as before, and probes take
// no simulated time.
#pragma once

#include <bitset>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "base/types.hh"
#include "cpu/x86/decode/op.hh"
#include "mem/phys_map.hh"

namespace moscope::x86 {

struct Block;
struct Core;
class BlockCache;

class Probes {
  public:
    static constexpr unsigned kPageBytes = 4096;
    using Page = std::shared_ptr<const std::vector<std::byte>>; ///< as in the file; shorter at its end
    struct Place {
        Page page;
        unsigned offset = 0;
        bool calls = true; ///< false: only note that the code was decoded, which means that a core reached it
    };
    /// The original function of a probed instruction, and the numbers of its probes.
    struct Hook {
        Exec exec = nullptr;
        std::vector<unsigned> probes;
        bool returns = false; ///< some call returns to it
    };

    explicit Probes(const PhysMap &phys) : phys_(phys) {}
    /// Before anything is decoded with these probes. Returns the probe's number.
    unsigned add(Place place);
    bool reached(unsigned probe) const;
    /// From now on, Platform::returned is called at address `va` of the core's address space, to which a call returns.
    /// No block is decoded again: a call ends a block, so the instruction at `va` is the first one of its block.
    void watch_return(const Core &core, Addr va);

    /// A cache whose blocks may have probes.
    void add_cache(BlockCache &cache) { caches_.push_back(&cache); }
    /// At a barrier: enters the returns that threads have asked for while they ran in parallel.
    void settle();
    /// Attaches the probes of a block that was just decoded.
    void attach(Block &block);
    /// The hook of an instruction that attach() has changed; it lasts as long as the block.
    const Hook &hook(const Op *op) const;
    /// To be called when all blocks are gone.
    void forget();

  private:
    bool is_here(const Page &page, Addr physical) const;
    void hook_return(Block &block);
    void hook_everywhere(Addr physical);

    const PhysMap &phys_;
    std::vector<Place> places_;
    std::bitset<kPageBytes> offsets_;                       ///< of any place
    std::unordered_multimap<unsigned, unsigned> by_offset_; ///< numbers of places
    mutable std::mutex shared_;                             ///< threads decode and run code in parallel
    std::vector<bool> reached_;
    std::unordered_set<Addr> returns_; ///< physical addresses
    std::vector<Addr> news_;           ///< those of returns_ that blocks in the caches do not have yet
    std::vector<BlockCache *> caches_;
    std::unordered_map<const Op *, Hook> hooks_; ///< also of blocks that are gone, until the place is used again
};

} // namespace moscope::x86
