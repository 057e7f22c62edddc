// SPDX-License-Identifier: BSD-3-Clause
// The execution pipes of family 10h and what an instruction needs of them, for the overlapping model (overlap.hh):
// three integer pipes (the multiplier belongs to the first, LZCNT and POPCNT to the third), FADD, FMUL and FMISC, and
// two accesses of the L1 data cache per cycle. Latencies, pipes and numbers of macro-operations come from published
// instruction tables (A. Fog, table "AMD K10") and from GCC's scheduler description of amdfam10.
#pragma once

#include <array>
#include <cstdint>

namespace moscope::x86 {

/// Bits of a set of pipes.
struct Pipe {
    static constexpr std::uint8_t alu0 = 1, alu2 = 2, fadd = 4, fmul = 8, fmisc = 16, port0 = 32, port1 = 64,
                                  walker = 128;
    static constexpr std::uint8_t add_or_mul = fadd | fmul, ports = port0 | port1;
};

/// Cycles of an integer division by the width of its operands in bits; the same for all values (docs/warts.md).
constexpr std::uint8_t division_cycles(unsigned width) { return width == 64 ? 71 : width == 32 ? 39 : 23; }

/// Bits 0-15 general registers, 16 the arithmetic flags, 17-32 XMM, 33 the x87 stack.
using RegMask = std::uint64_t;

struct alignas(32) OpPipes {
    std::uint8_t latency = 1; ///< of its execution, in cycles, without its memory access
    std::uint8_t pipes = 0;   ///< any of these executes it; 0: one is always free, or none is needed
    std::uint8_t busy = 1;    ///< cycles until the pipe, or its divider, takes another one
    std::uint8_t slots = 1;   ///< of the three for dispatch, and the three for retirement, per cycle
    std::uint8_t loads = 0;   ///< accesses of the L1 data cache
    std::uint8_t stores = 0;
    /// The most frequent kinds of instructions, for which the model has a short path.
    enum class Form : std::uint8_t {
        general,
        simple, ///< waits for registers, takes its latency, writes registers: no memory, no pipe, no blocked unit
        load,   ///< the same with one load
        store,  ///< the same with one store
    };
    Form form = Form::general;
    bool only_loads = false; ///< a load that does not compute with the value
    /// Unless the form is general: bit numbers of the registers in `sources` (without those of the address), of the
    /// address registers, and of those in `writes`.
    static constexpr std::uint8_t kAlwaysReady = 34, kUnused = 35;
    std::uint8_t source[3] = {kAlwaysReady, kAlwaysReady, kAlwaysReady};
    std::uint8_t address[2] = {kAlwaysReady, kAlwaysReady};
    std::uint8_t result[2] = {kUnused, kUnused};
    RegMask sources = 0; ///< registers that it waits for, including the arithmetic flags
    RegMask writes = 0;  ///< registers that it writes, including these flags
    bool operator==(const OpPipes &) const = default;
};
static_assert(sizeof(OpPipes) == 32);

/// Which pipes are taken in which cycle, for the cycles around the window. An operation takes the first free cycle
/// after its sources are ready, so a younger one may go before an older one that still waits.
class PipeSchedule {
  public:
    /// Takes one of `pipes` for `busy` cycles. Returns the first of them, not before `cycle`.
    std::int64_t take(std::uint8_t pipes, std::int64_t cycle, unsigned busy) {
        Full &full = full_[pipes];
        const std::int64_t wanted = cycle;
        if (cycle >= full.from && cycle < full.to)
            cycle = full.to;
        std::uint32_t *e = &entry(cycle);
        std::uint8_t free = pipes & static_cast<std::uint8_t>(~used(*e, cycle));
        while (!free) {
            e = &entry(++cycle);
            free = pipes & static_cast<std::uint8_t>(~used(*e, cycle));
        }
        if (cycle != wanted)
            full = {wanted >= full.from && wanted <= full.to ? full.from : wanted, cycle};
        const auto one = static_cast<std::uint8_t>(free & -free);
        mark(*e, cycle, one);
        for (unsigned i = 1; i < busy; ++i)
            mark(entry(cycle + i), cycle + i, one);
        return cycle;
    }

  private:
    /// More than the cycles between any two operations of one window, except with several misses to the farthest DRAM
    /// in a row. Beyond that, the entry of a cycle may be lost and a pipe taken twice.
    static constexpr std::uint64_t kCycles = 1024;

    std::uint32_t &entry(std::int64_t cycle) { return cycles_[static_cast<std::uint64_t>(cycle) % kCycles]; }
    /// Distinguishes the cycles that share an entry, for 2^34 cycles (about 7 s).
    static std::uint32_t tag(std::int64_t cycle) {
        return static_cast<std::uint32_t>(static_cast<std::uint64_t>(cycle) / kCycles) << 8;
    }
    static std::uint8_t used(std::uint32_t e, std::int64_t cycle) {
        return (e & ~0xffu) == tag(cycle) ? static_cast<std::uint8_t>(e) : std::uint8_t{0};
    }
    static void mark(std::uint32_t &e, std::int64_t cycle, std::uint8_t pipe) {
        e = tag(cycle) | used(e, cycle) | pipe;
    }
    /// Cycles in which a search found no free pipe of a set: later searches continue at `to`.
    struct Full {
        std::int64_t from = 0, to = 0;
    };
    std::array<Full, 256> full_{};                ///< by set
    std::array<std::uint32_t, kCycles> cycles_{}; ///< tag | pipes that are taken in it: small, for the host's caches
};

} // namespace moscope::x86
