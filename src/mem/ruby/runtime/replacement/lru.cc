// SPDX-License-Identifier: BSD-3-Clause
// Least recently used: each hit writes the line's time stamp, and the line with the oldest stamp is replaced.
#include "mem/ruby/runtime/replacement/replacement_policy.hh"

namespace moscope::ruby {

namespace {

const RegisteredReplacement registered({.name = "lru", .hit = ReplacementPolicy::Hit::stamp});

} // namespace

} // namespace moscope::ruby
