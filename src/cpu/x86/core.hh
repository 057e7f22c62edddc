// SPDX-License-Identifier: BSD-3-Clause
// One core as the interpreter sees it: architectural state, translations, decoded blocks, the reason that ended the
// last block, and the services of the machine. Instruction functions (cpu/x86/exec) take it by reference.
//
// Conventions of instruction functions (see op.hh):
// - They return op + 1, or null after a branch with State::rip set.
// - Memory accesses (memory.hh) return false on a guest fault; the function then returns `c.fault_at(op)` and has
//   changed nothing that the architecture promises to keep.
// - `raise(vector, error)` records a fault of the instruction itself; again `return c.fault_at(op)`.
#pragma once

#include <cstdint>
#include <vector>

#include "base/error.hh"
#include "cpu/x86/decode/op.hh"
#include "cpu/x86/mmu/tlb.hh"
#include "cpu/x86/platform.hh"
#include "cpu/x86/state.hh"
#include "dev/irq.hh"
#include "mem/phys_map.hh"

namespace moscope::x86 {

class BlockCache;
struct Block;
class TimedCore;
struct CpuModel; // cpuid.hh: what CPUID and the model-specific registers say

/// A guest fault on its way to becoming architectural state.
struct Fault {
    std::uint8_t vector = 0;
    bool has_error = false;
    std::uint32_t error = 0;
    Addr address = 0;           ///< page faults: CR2
    bool not_canonical = false; ///< #GP for the address of a data access; a reference to the stack makes it #SS
};

/// Why a block was left early.
enum class Exit : std::uint8_t {
    none,
    fault,     ///< Core::fault, rip at the instruction
    trap,      ///< a software interrupt has been taken and rip is set: execution continues there
    traced,    ///< SYSCALL or SYSRET has ended; the new RFLAGS.TF decides whether a single-step trap follows
    restart,   ///< run again from rip (interrupted string instruction, code was overwritten, mode changed)
    pause,     ///< PAUSE: the rest of the time slice may go to others
    halt,      ///< HLT or MWAIT; State::halted is set
    shutdown,  ///< triple fault
    stop,      ///< the platform asked to stop (power-off, exit port, marker)
    unmodelled ///< an instruction that the model lacks; rip at it
};

struct Core : State {
    Core(unsigned number_, Platform &p, const PhysMap &m, BlockCache &b, const CpuModel &model_)
        : platform(p), phys(m), blocks(&b), model(model_), number(number_) {}

    // --- run loop
    Exit exit = Exit::none;
    Fault fault;
    std::uint64_t retired = 0;      ///< instructions; while a block runs, all of its instructions
    std::uint64_t extra_cycles = 0; ///< time beyond one cycle per instruction (I/O, long operations), functional mode
    std::uint64_t pauses = 0;       ///< PAUSE instructions retired
    std::uint64_t spun = 0;         ///< instructions retired in loops around a PAUSE
    Addr spin_at = 0;               ///< the last PAUSE ...
    std::uint64_t spin_mark = 0;    ///< ... and `retired` there
    const Op *left_at = nullptr;    ///< where a block was left early
    dev::CoreSignals signals;
    dev::InterruptSource *interrupts = nullptr;
    Tlb tlbs[2];                  ///< supervisor, user
    Tlb *tlb = &tlbs[0];          ///< the TLB of the current privilege level, or `nothing`
    TimedCore *timed = nullptr;   ///< detailed mode: what accesses go through
    bool direct = true;           ///< accesses may go straight to host memory (functional mode)
    bool check_alignment = false; ///< misaligned accesses raise #AC
    inline static Tlb nothing;    ///< stays empty: `tlb` while each access takes the slow path

    /// Runs until `budget` instructions have retired (a block may overshoot) or something ends it earlier.
    Exit run(std::uint64_t budget);

    // --- the steps of the loop, for detailed mode, which has one of its own
    struct Begin {
        Block *block = nullptr;
        bool single = false;  ///< one instruction
        bool trap = false;    ///< end_block has to check for traps
        bool step = false;    ///< RFLAGS.TF was set
        bool resumed = false; ///< RFLAGS.RF was set, which lasts for one instruction
    };
    /// Checks what may be due before an instruction (if `attend`), including pending interrupts (if `interrupts`), and
    /// finds the block at rip. If there is no block, either `exit` gives the reason, or a fault was delivered (of the
    /// fetch, or a breakpoint) and the caller begins again.
    Begin begin_block(bool attend, bool interrupts = true);
    /// After the block's last operation: delivers faults and traps. False: `exit` says why the loop must be left.
    bool end_block(const Begin &);

    /// Address of the instruction; valid inside instruction functions.
    Addr address_of(const Op *op) const { return r[reg_block] + op->start; }
    Addr address_after(const Op *op) const { return r[reg_block] + op->start + op->length; }

    // --- leaving a block early
    /// With `fault` filled in: leaves the block at this instruction.
    const Op *fault_at(const Op *op) {
        if (fault.not_canonical && refers_to_stack(op))
            fault.vector = exc_ss;
        exit = Exit::fault;
        rip = address_of(op);
        left_at = op;
        return nullptr;
    }
    /// Leaves the block after this instruction, which has completed.
    const Op *leave_after(const Op *op, Exit why) {
        exit = why;
        rip = address_after(op);
        left_at = op + 1;
        return nullptr;
    }
    /// Leaves the block before this instruction, to run it again.
    const Op *leave_before(const Op *op, Exit why) {
        exit = why;
        rip = address_of(op);
        left_at = op;
        return nullptr;
    }
    /// Whether a non-canonical data address of this instruction raises #SS in 64-bit mode: it does for pushes, pops,
    /// and operands addressed by RSP or RBP.
    static bool refers_to_stack(const Op *op) {
        return !op->mem || ((op->seg == seg_none || op->seg == ss) && (op->base == rsp * 8 || op->base == rbp * 8));
    }
    bool raise(unsigned vector) {
        fault = {static_cast<std::uint8_t>(vector), false, 0, 0, false};
        return false;
    }
    bool raise(unsigned vector, std::uint32_t error) {
        fault = {static_cast<std::uint8_t>(vector), true, error, 0, false};
        return false;
    }

    // --- breakpoints (debug.cc)
    static constexpr std::uint8_t kWatchFetch = 1, kWatchData = 2, kWatchPort = 4; ///< in `watched`
    std::uint8_t struck = 0; ///< data and port breakpoints that the running instruction has hit, as bits of DR6
    /// After a change of DR0 to DR3 or DR7.
    void debug_changed();
    /// Checks instruction breakpoints. False: `armed`, and there is one at rip: #DB was raised. `near`: there is one in
    /// this page.
    bool watch_fetch(bool armed, bool &near);
    void watch_data(Addr, unsigned size, bool write);
    void watch_port(unsigned port, unsigned size);

    // --- translations (paging.cc)
    /// After a change of CR0, CR4, EFER, CPL or CS: chooses the current TLB, and updates the tags that remembered
    /// blocks must have.
    void mode_changed() {
        choose_tlb();
        if (!code64()) // an address means something else under another code segment
            ++local_generation, ++global_generation;
        retag();
    }
    /// Chooses the current TLB, or an empty one if each access has to take the slow path. Also called after a change of
    /// RFLAGS.AC.
    void choose_tlb() {
        check_alignment = cpl == 3 && (cr0 & cr0::am) && (flags.system & Flags::ac);
        tlb = check_alignment || (watched & kWatchData) ? &nothing : &tlbs[cpl == 3];
    }
    /// For a switch between functional and detailed mode: sets whether accesses may go straight to host memory.
    void set_direct(bool yes) {
        direct = yes;
        choose_tlb();
        flush_tlb(true);
    }
    void flush_tlb(bool global_too);
    /// After a change of the translations of non-global pages (or of all pages): forgets which blocks their addresses
    /// led to.
    void forget_blocks(bool global_too) {
        ++local_generation;
        global_generation += global_too;
        retag();
    }
    void flush_page(Addr va);

    Platform &platform;
    const PhysMap &phys;
    BlockCache *blocks; ///< of the host thread that runs this core
    const CpuModel &model;
    const unsigned number;
    unsigned chip = 0;         ///< cores of one chip are run by one host thread at a time
    unsigned apic_id = number; ///< the local APIC's initial identifier, which CPUID reports

    // --- recently used blocks by address. An entry is valid while its tag is current. A tag holds the mode, the
    // privilege and the generation of translations; global pages have a generation of their own, which survives a
    // change of CR3.
    struct Jump {
        Addr rip = 0;
        std::uint64_t tag = 0;
        Block *block = nullptr;
    };
    static constexpr unsigned kJumps = 2048;
    Jump jumps[kJumps];
    bool remembers(const Jump &j, Addr a) const { return j.rip == a && (j.tag == global_tag || j.tag == local_tag); }
    static std::uint32_t jump_number(Addr a) { return static_cast<std::uint32_t>(a ^ a >> 11) & (kJumps - 1); }
    const Jump &jump_of(Addr a) const { return jumps[jump_number(a)]; }
    Jump &jump_of(Addr a) { return jumps[jump_number(a)]; }
    std::uint64_t local_generation = 1, global_generation = 1;
    std::uint64_t local_tag = 0, global_tag = 0;

    void retag() {
        const std::uint64_t how = static_cast<unsigned>(mode()) << 1 | (cpl == 3 ? 8u : 0u);
        local_tag = local_generation << 4 | how;
        global_tag = global_generation << 4 | how | 1;
    }
};

} // namespace moscope::x86
