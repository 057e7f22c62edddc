// SPDX-License-Identifier: BSD-3-Clause
// What a core remembers of translations, in a checkpoint: the entries of its TLBs, and which block it found at an
// address last. Page tables may say something else by then, or their accessed bits may be clear, and the core goes on
// with what it remembers until the guest makes it look again: a run from a checkpoint has to do the same.
#pragma once

#include "cpu/x86/core.hh"
#include "sim/archive.hh"

namespace moscope::x86 {

/// Loading: the core's state, guest memory and an empty block cache are in place, and the core remembers nothing yet.
void archive_translations(Core &, Archive &);

} // namespace moscope::x86
