// SPDX-License-Identifier: BSD-3-Clause
// First in, first out: a stamp is the time at which a line was placed, and hits change nothing.
#include "mem/ruby/runtime/replacement/replacement_policy.hh"

namespace moscope::ruby {

namespace {

const RegisteredReplacement registered({.name = "fifo", .hit = ReplacementPolicy::Hit::nothing});

} // namespace

} // namespace moscope::ruby
