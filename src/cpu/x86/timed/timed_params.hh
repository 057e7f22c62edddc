// SPDX-License-Identifier: BSD-3-Clause
// The parameters of a core in detailed mode: those that src/schema/pipeline.py describes, with their sources, and two
// that apply to the whole machine.
#pragma once

#include "schema/pipeline.hh"

namespace moscope::x86 {

struct TimedParams : PipelineParams {
    CoreParams core;
    unsigned outstanding_misses = 8; ///< lines that the core requests at a time
    bool skip_spinning = true;       ///< cores skip iterations of spin loops

    bool overlaps() const { return core.model == "out_of_order"; }
};

} // namespace moscope::x86
