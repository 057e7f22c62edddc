// SPDX-License-Identifier: BSD-3-Clause
// Probes: instructions of programs, mostly first ones of functions, at which the platform is called (Platform::probed). A probe is
// named by the page of the program's file that holds the instruction, and the offset there. It is therefore found in every process
// that has mapped the page, wherever that is, before the process exists: programs and shared libraries are mapped by whole pages, and
// position-independent code is not changed on the way.
//
// Whether an instruction is probed is decided when it is decoded: it gets another function, which calls its own and then the
// platform. Instructions without a probe cost nothing, blocks are as long as before, and nothing takes simulated time.
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
        bool calls = true; ///< else it is only noted that the code was decoded, which means that a core came there
    };
    /// What a probed instruction is without its probes, and their numbers.
    struct Hook {
        Exec exec = nullptr;
        std::vector<unsigned> probes;
        bool returns = false; ///< some call returns to it
    };

    explicit Probes(const PhysMap &phys) : phys_(phys) {}
    /// Before anything is decoded with these probes. Returns the probe's number.
    unsigned add(Place place);
    bool reached(unsigned probe) const;
    /// From now on, Platform::returned is called at `va` of the core's address space, which a call returns to. No block is decoded
    /// anew: a call ends a block, so what it returns to is the first instruction of another.
    void watch_return(const Core &core, Addr va);

    /// A cache whose blocks may have probes.
    void add_cache(BlockCache &cache) { caches_.push_back(&cache); }
    /// At a barrier: enters the returns that threads have asked for while they ran side by side.
    void settle();
    /// Of a block that was just decoded.
    void attach(Block &block);
    /// Of an instruction that attach() has changed; lasts as long as its block.
    const Hook &hook(const Op *op) const;
    /// All blocks are gone.
    void forget();

  private:
    bool is_here(const Page &page, Addr physical) const;
    void hook_return(Block &block);
    void hook_everywhere(Addr physical);

    const PhysMap &phys_;
    std::vector<Place> places_;
    std::bitset<kPageBytes> offsets_;                       ///< of any place
    std::unordered_multimap<unsigned, unsigned> by_offset_; ///< numbers of places
    mutable std::mutex shared_;                             ///< threads decode and run code side by side
    std::vector<bool> reached_;
    std::unordered_set<Addr> returns_; ///< physical addresses
    std::vector<Addr> news_;           ///< of them, those that blocks of caches do not have yet
    std::vector<BlockCache *> caches_;
    std::unordered_map<const Op *, Hook> hooks_; ///< also of blocks that are gone, until the place is used again
};

} // namespace moscope::x86
