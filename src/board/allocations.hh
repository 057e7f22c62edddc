// SPDX-License-Identifier: BSD-3-Clause
// Records which call of a program allocated each piece of its heap. Calls of allocators are observed at probes
// (cpu/x86/decode/probes.hh) at the allocators' first instructions and at the addresses to which they return, from the
// program's first instruction on, in functional mode as well. The program is not changed.
//
// A call is identified by its address space and the place of its return address on the stack. This keeps apart calls of
// several threads, nested calls (operator new calls malloc) and calls that a signal interrupts. The outermost call
// names the memory. A site is an address to which allocators return. The registers and the stack of its first call are
// kept, so that the front end can find the program's own line. Freed memory keeps its site until it is allocated again.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "cpu/x86/core.hh"
#include "schema/stacks.hh"

namespace moscope {

class Allocations {
  public:
    /// What a function does with its arguments.
    enum class Role : std::uint8_t {
        size_first,   ///< malloc(size), operator new(size)
        product,      ///< calloc(number, size)
        reallocation, ///< realloc(old, size)
        size_second,  ///< aligned_alloc(alignment, size)
        by_address,   ///< posix_memalign(&pointer, alignment, size)
        release,      ///< free(pointer)
        begins        ///< a program's first instruction: nothing in its address space is allocated yet
    };
    /// Packed into allocations(): 64-bit numbers.
    struct Piece {
        std::uint64_t address_space, start, size, site, freed;
    };

    /// A core has executed the first instruction of a function with this role. `function`: its number in the front end.
    void entered(x86::Core &, Role, unsigned function, const x86::Probed &before);
    /// A core is about to execute an instruction to which an allocator returns.
    void returned(x86::Core &, Addr at);

    /// All memory that is known: packed Pieces.
    std::string pieces() const;
    /// For each site, by number: a StackSample whose `line` is the function's number, then the user stack's bytes.
    std::string sites() const;

  private:
    static constexpr Addr kTable = 0x000ffffffffff000; ///< the bits of CR3 that identify an address space
    static constexpr std::uint64_t kStack = 4 << 10;
    struct Call {
        Role role;
        unsigned function;
        std::uint64_t size;
        Addr returns_to, argument;
    };
    struct Known {
        std::uint64_t size;
        std::uint32_t site;
        bool freed;
    };
    using Space = std::map<Addr, Known>; ///< by first byte; they do not overlap

    std::uint32_t site_of(const x86::Core &, unsigned function, Addr at);
    static void add(Space &, Addr start, std::uint64_t size, std::uint32_t site);
    static void release(Space &, Addr start);

    mutable std::mutex shared_;                   ///< detailed mode may run chips side by side
    std::map<std::pair<Addr, Addr>, Call> calls_; ///< under way, by address space and place of the return address
    std::map<Addr, Space> spaces_;
    std::map<std::tuple<Addr, Addr, unsigned>, std::uint32_t> site_numbers_; ///< by address space, address, function
    struct Site {
        StackSample head;
        std::vector<std::byte> stack;
    };
    std::vector<Site> sites_;
};

} // namespace moscope
