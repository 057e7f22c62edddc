// SPDX-License-Identifier: BSD-3-Clause
// A core in detailed mode: what src/schema/pipeline.py describes, with its sources, and two values of the whole
// machine.
#pragma once

#include "schema/pipeline.hh"

namespace moscope::x86 {

struct TimedParams : PipelineParams {
    unsigned outstanding_misses = 8; ///< lines that the store buffer requests at a time
    bool skip_spinning = true;       ///< cores skip iterations of spin loops
};

} // namespace moscope::x86
