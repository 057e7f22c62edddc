# SPDX-License-Identifier: BSD-3-Clause
"""Files that the user names, which are read to their end and perhaps again later: what else has a path is refused."""

import stat
from pathlib import Path

KINDS = {stat.S_ISDIR: "is a folder", stat.S_ISCHR: "is a device", stat.S_ISBLK: "is a device", stat.S_ISFIFO: "is a pipe"}


def fault(path: Path) -> str:
    """Why it cannot be read as a file; empty if it can. A device may have no end, and opening a pipe waits for who writes into it."""
    try:
        mode = path.stat().st_mode
        if stat.S_ISREG(mode):
            path.open("rb").close()
            return ""
    except OSError as error:
        return error.strerror or "cannot be read"
    except ValueError:  # of Python's callers: a null character
        return "is not a path"
    return next((words for is_one, words in KINDS.items() if is_one(mode)), "is not a regular file")
