// SPDX-License-Identifier: BSD-3-Clause
// What the machine description says of a core in detailed mode (its `pipeline`, `outstanding_misses`). The sources of the
// values are there; these here are family 10h's again, for tests without a description.
#pragma once

#include "base/types.hh"

namespace moscope::x86 {

struct TimedParams {
    unsigned width = 3;          ///< operations issued per cycle
    unsigned locked_cycles = 12; ///< a locked operation beyond its accesses
    unsigned store_buffer = 32;  ///< entries
    unsigned l1_tlb = 48;        ///< entries of the first-level data TLB
    unsigned l2_tlb_cycles =
        5; ///< a first-level TLB miss that the second level serves (its walk, if any, comes on top)
    unsigned outstanding_misses = 8;     ///< lines that the store buffer asks for at a time
    Tick interrupt_latency = 60'000'000; ///< from an interrupt's arrival to the core's notice
    bool skip_spinning = true;           ///< cores skip iterations of spin loops
};

} // namespace moscope::x86
