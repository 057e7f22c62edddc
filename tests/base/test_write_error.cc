// SPDX-License-Identifier: BSD-3-Clause
// The message for a failed write names the file, the cause, and what would help against this cause.
#include "base/write_error.hh"

#include <cerrno>

#include <gtest/gtest.h>

using moscope::write_error;

TEST(WriteError, NamesWhatTheFileSystemLacks) {
    EXPECT_STREQ(write_error("a", ENOSPC).what(), "a: cannot be written: No space left on device: expected free space");
    EXPECT_STREQ(write_error("a", EDQUOT).what(),
                 "a: cannot be written: Disk quota exceeded: expected free space within the quota");
    EXPECT_STREQ(write_error("a", EFBIG).what(),
                 "a: cannot be written: File too large: expected a higher limit of file sizes (ulimit -f)");
    EXPECT_STREQ(write_error("a", EROFS).what(),
                 "a: cannot be written: Read-only file system: expected a file system that can be written");
}

TEST(WriteError, ExpectsWhatTheCallerNamesForOtherCauses) {
    EXPECT_STREQ(write_error("a", EIO).what(), "a: cannot be written: Input/output error: expected a writable file");
    EXPECT_STREQ(write_error("a/b", ENOENT, "a folder that exists").what(),
                 "a/b: cannot be written: No such file or directory: expected a folder that exists");
}
