# SPDX-License-Identifier: BSD-3-Clause
"""Locks on open files, which the system drops when their holder ends, however it ends. Standard library only: the launcher uses it."""

import errno
import fcntl
from pathlib import Path
from typing import IO, Any

# Of file systems without locks, such as Lustre that is mounted without them. They do without.
NO_LOCKS = (errno.ENOSYS, errno.EOPNOTSUPP, errno.ENOLCK)


def take(handle: IO[Any], *, wait: bool = True) -> bool:
    """Takes the lock of an open file until it is closed; false if another process or thread has it, and `wait` is false."""
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
