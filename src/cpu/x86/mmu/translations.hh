// SPDX-License-Identifier: BSD-3-Clause
// The translations that a core remembers, as a checkpoint holds them: the entries of its TLBs, and the block that it
// last found at each address. The guest's page tables may have changed since, or their accessed bits may have been
// cleared. The core uses what it remembers until the guest makes it look again, so a run from a checkpoint has to do
// the same.
#pragma once

#include "cpu/x86/core.hh"
#include "sim/archive.hh"

namespace moscope::x86 {

/// Loading: the core's state, guest memory and an empty block cache are in place, and the core remembers nothing yet.
void archive_translations(Core &, Archive &);

} // namespace moscope::x86
