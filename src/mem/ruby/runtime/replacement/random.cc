// SPDX-License-Identifier: BSD-3-Clause
// A random way, from the run's seed. A draw stays until a line has been placed, so that the victim is the same when it is
// asked for twice.
#include "mem/ruby/runtime/replacement/replacement_policy.hh"

namespace moscope::ruby {

namespace {

const RegisteredReplacement registered({
    .name = "random",
    .hit = ReplacementPolicy::Hit::nothing,
    .words_per_set = 1, // the first holds the draw of the whole array
    .victim = [](const ReplacementState &s, unsigned) { return static_cast<unsigned>(s.words[0] % s.ways); },
    .placed = [](ReplacementState &s, unsigned, unsigned) { s.words[0] = s.rng.next(); },
});

} // namespace

} // namespace moscope::ruby
