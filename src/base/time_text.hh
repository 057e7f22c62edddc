// SPDX-License-Identifier: BSD-3-Clause
// Simulated time as a user reads it: nanoseconds.
#pragma once

#include <cstdio>
#include <string>

#include "base/types.hh"

namespace moscope {

inline std::string in_ns(Tick t) {
    char text[40];
    std::snprintf(text, sizeof text, "%.3f ns", static_cast<double>(t) / kTicksPerNs);
    return text;
}

} // namespace moscope
