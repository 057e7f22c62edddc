# SPDX-License-Identifier: BSD-3-Clause
"""The user's message for an exception that is no MoscopeError, and for a process that was killed. A full disk, exhausted memory, an
unusable path and a signal from outside are errors of the user. Anything else is a bug, whose traceback goes into a file that the user can
send."""

import errno
import os
import signal
import tempfile
import traceback

from moscope.errors import MoscopeError, SimulatorBug, UserError

# Write errors of a full or read-only disk, with the text after `expected`.
FREE_SPACE = "free space"
NO_ROOM = {errno.ENOSPC: FREE_SPACE, errno.EDQUOT: f"{FREE_SPACE} within the quota",
           errno.EFBIG: "a higher limit of file sizes (ulimit -f)", errno.EROFS: "a file system that can be written"}
# Errors of a path from the user or the environment; even a test for its existence may fail with these.
NO_PATH = {errno.EACCES: "a path that this user may use", errno.EPERM: "a path that this user may use",
           errno.ENAMETOOLONG: "a shorter path"}
# Signals that a process does not send itself, with a likely sender.
FROM_OUTSIDE = {signal.SIGHUP: "a terminal that is closed", signal.SIGTERM: "a shutdown", signal.SIGKILL: "a host that is out of memory"}


def killed(what: str, code: int) -> UserError | None:
    """The error to report for a process that ended with this code of `subprocess`; None unless a signal from outside has ended it."""
    by = FROM_OUTSIDE.get(signal.Signals(-code)) if code < 0 and -code in set(signal.Signals) else None
    if by is None:
        return None
    return UserError(f"{what}: was killed by signal {-code} ({signal.Signals(-code).name}), probably by {by}: expected it to run to its "
                     "end; the same command starts it again")


def as_error(error: BaseException, doing: str) -> MoscopeError:
    """The error to report. `doing` (a command line, or a point) precedes the traceback in the file."""
    if isinstance(error, MoscopeError):
        return error
    if isinstance(error, MemoryError):
        return UserError("memory: the host has no more: expected a smaller machine (caches, memory_per_node), or a host with more memory")
    if isinstance(error, OSError) and (of_user := user_error(error)):
        return of_user
    text = str(error).splitlines()[0] if str(error) else "no text"
    return SimulatorBug(f"{type(error).__name__}: {text} ({_kept(error, doing)})")


def user_error(error: OSError) -> UserError | None:
    """The error to report for one of the user's disk or path; None for any other."""
    if error.errno in NO_ROOM:
        return UserError(f"{error.filename or 'results'}: {error.strerror}: expected {NO_ROOM[error.errno]} "
                         "for the results (--out, standard output, the cache)")
    if error.errno == errno.ENOENT and error.filename is None and not _has_folder():
        return UserError("the working directory: was removed: expected moscope to be started in an existing folder")
    if error.errno in NO_PATH and isinstance(error.filename, str | os.PathLike):
        return UserError(f"{os.fspath(error.filename)}: {error.strerror}: expected {NO_PATH[error.errno]}")
    return None


def expected(error: OSError, otherwise: str) -> str:
    """The text after `expected` for a failed write: what the disk lacks, or else `otherwise`, such as "a writable folder"."""
    return NO_ROOM.get(error.errno or 0, otherwise)


def _has_folder() -> bool:
    try:
        os.getcwd()
    except FileNotFoundError:
        return False
    return True


def _kept(error: BaseException, doing: str) -> str:
    try:
        with tempfile.NamedTemporaryFile("w", encoding="utf-8", errors="backslashreplace", prefix="moscope-", suffix=".log",
                                         delete=False) as log:
            log.write(f"{doing}\n")
            log.writelines(traceback.format_exception(error))
    except OSError as full:
        return f"details could not be kept: {full.strerror}"
    return f"details in {log.name}"
