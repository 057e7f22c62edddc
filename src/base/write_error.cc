// SPDX-License-Identifier: BSD-3-Clause
#include "base/write_error.hh"

#include <cerrno>
#include <cstring>

namespace moscope {

namespace {

/// As in src/python/moscope/failures.py.
const char *expected(int error, const char *otherwise) {
    switch (error) {
    case ENOSPC: return "free space";
    case EDQUOT: return "free space within the quota";
    case EFBIG: return "a higher limit of file sizes (ulimit -f)";
    case EROFS: return "a file system that can be written";
    default: return otherwise;
    }
}

} // namespace

UserError write_error(const std::string &path, int error, const char *otherwise) {
    return UserError(path + ": cannot be written: " + std::strerror(error) + ": expected " +
                     expected(error, otherwise));
}

} // namespace moscope
