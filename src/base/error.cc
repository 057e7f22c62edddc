// SPDX-License-Identifier: BSD-3-Clause
// Formats the message of a failed simulator assertion.
#include "base/error.hh"

namespace moscope {

void simulator_bug(const char *what, const char *file, int line) {
    throw SimulatorBug(std::string(file) + ":" + std::to_string(line) + ": assertion failed: " + what);
}

} // namespace moscope
