# SPDX-License-Identifier: BSD-3-Clause
"""Locks on open files, which the system releases when their holder ends, in whatever way. Standard library only, because the
launcher uses it."""

import errno
import fcntl
from pathlib import Path
from typing import IO, Any

# Errors of file systems without locks, such as a Lustre that is mounted without them. There, no lock is taken.
NO_LOCKS = (errno.ENOSYS, errno.EOPNOTSUPP, errno.ENOLCK)


def take(handle: IO[Any], *, wait: bool = True) -> bool:
    """Takes the lock of an open file until the file is closed; false if another process or thread has it and `wait` is false."""
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except BlockingIOError:
        return False
    except OSError as error:
        if error.errno not in NO_LOCKS:
            raise
    return True


def held(path: Path) -> bool:
    """Whether the lock of this file is taken, be it by this process. Never on a file system without locks."""
    with path.open("w") as handle:
        return not take(handle, wait=False)
