// SPDX-License-Identifier: BSD-3-Clause
// Where the heap of programs came from: calls of allocators are followed by probes at their first instruction and where they return to
// (cpu/x86/decode/probes.hh), without a change to the program, from the first instruction of its life in functional mode on.
//
// A call is known by its address space and the place of its return address on the stack, so calls of several threads, nested calls
// (operator new calls malloc) and calls that a signal interrupts are kept apart. The outermost call names the memory. A site is an
// address that allocators return to; of its first call the registers and the stack are kept, for the front end to find the program's
// own line. Memory that is freed keeps its site until it is allocated again.
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
        begins        ///< a program's first instruction: nothing in its address space is allocated
    };
    /// Packed into allocations(): 64-bit numbers.
    struct Piece {
        std::uint64_t address_space, start, size, site, freed;
    };

    /// A core has carried out the first instruction of such a function; `function`: its number, for the front end.
    void entered(x86::Core &, Role, unsigned function, const x86::Probed &before);
    /// A core is about to carry out an instruction that some allocator returns to.
    void returned(x86::Core &, Addr at);

    /// All memory that is known: packed Pieces.
    std::string pieces() const;
    /// Of each site, by number, a StackSample whose `line` is the function's number, with the bytes of the user's stack.
    std::string sites() const;

  private:
    static constexpr Addr kTable = 0x000ffffffffff000; ///< the part of CR3 that says which address space it is
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
