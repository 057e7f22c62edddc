// SPDX-License-Identifier: BSD-3-Clause
// Samples of the stacks of waiting cores, from which the front end finds the callers
// (src/python/moscope/naming/unwind). A core takes a sample at a random point of each period that it has waited (stall
// and spin), and the sample stands for a period. When a core has too many samples, they are merged in pairs and its
// period doubles. Long windows thus have as many samples as short ones.
//
// A sample holds the core's general registers and the bytes of its stack as the core sees them, including stores in its
// store buffer. A kernel stack on which the processor entered from a user program ends at a page boundary, and the
// registers that the processor pushed lie at its end. It is a task's stack (Linux, arch/x86/include/asm/processor.h,
// task_pt_regs) or the entry code's (asm/fixmap.h, cpu_entry_area). The pushed stack pointer leads to the user's stack,
// which the sample holds too. An interrupt's own stack ends with the stack pointer of the interrupted code
// (asm/irq_stack.h), whose stack follows in the sample.
//
// Taking samples does not change the guest. Each core has samples of its own, so the result does not depend on how many
// host threads simulate the chips.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "attribution/sample_points.hh"
#include "cpu/x86/timed/timed_core.hh"
#include "schema/stacks.hh"

namespace moscope {

/// Appends what the core sees at [from, to) of its address space, up to the first page that is not there.
void append_seen(const x86::Core &core, Addr from, Addr to, std::vector<std::byte> &out);

class StackSamples {
  public:
    static constexpr Tick kPeriod = 500 * kTicksPerNs;
    static constexpr unsigned kInAll = 8'192; ///< samples of all cores at most
    static constexpr unsigned kPerCore = 4'096;
    static constexpr std::uint64_t kKernelStack = 16 << 10, kUserStack = 8 << 10; ///< bytes

    explicit StackSamples(const std::vector<std::unique_ptr<x86::Core>> &cores);

    /// To be called when a core that has waited for `time` continues. Takes a sample if a point lies in this wait.
    void waited(unsigned core, Addr line, Tick time) {
        if (__builtin_expect(of_[core].points.waited(time), 0))
            take(core, line);
    }
    void reset();
    /// Packed: for each sample a StackSample, then the bytes of the kernel's stack, then those of the user's stack.
    std::string packed() const;

  private:
    struct Sample {
        StackSample head;
        std::vector<std::byte> stack;
    };
    struct alignas(64) OfCore {
        SamplePoints points;
        std::vector<Sample> samples{};
    };
    void take(unsigned core, Addr line);
    void halve(OfCore &) const;

    const std::vector<std::unique_ptr<x86::Core>> &cores_;
    std::size_t most_; ///< samples of a core
    std::vector<OfCore> of_;
};

} // namespace moscope
