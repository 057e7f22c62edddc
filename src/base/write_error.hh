// SPDX-License-Identifier: BSD-3-Clause
// The user's message for a file that cannot be written, with what its file system lacks.
#pragma once

#include <string>

#include "base/error.hh"

namespace moscope {

/// The error to throw after a write to `path` has failed with `error`, a value of errno. `otherwise` is the text after
/// `expected` for causes without one of their own.
UserError write_error(const std::string &path, int error, const char *otherwise = "a writable file");

} // namespace moscope
