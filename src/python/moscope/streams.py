# SPDX-License-Identifier: BSD-3-Clause
"""Handles unusual standard streams: closed ones (`>&-`), and a standard error whose reader ends before the command does (`2>&1 |
head`)."""

import fcntl
import io
import os
import sys
from typing import Any

NO_STDOUT = "_MOSCOPE_NO_STDOUT"  # in the environment: the launcher was started with a closed standard output
_missing: set[str] = set()


def has_stdout() -> bool:
    """Whether the process was started with a standard output. Without one, what is printed is lost."""
    return "stdout" not in _missing


class _Stderr(io.FileIO):
    """A standard error that drops progress and remarks once its reader is gone, so that the command can finish its results."""

    def write(self, data: Any) -> int:
        try:
            return super().write(data) or 0
        except BrokenPipeError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), self.fileno())
            return len(data)


def _serves(number: int, access: int) -> bool:
    """Whether a descriptor can serve as this stream. A shell script that starts moscope may have another file there, which cannot
    be printed to."""
    try:
        return fcntl.fcntl(number, fcntl.F_GETFL) & os.O_ACCMODE in (access, os.O_RDWR)
    except OSError:
        return False


def prepare() -> None:
    """Call this first: otherwise a file that is opened later would get the number of a closed stream, and output would go into
    that file."""
    if os.environ.pop(NO_STDOUT, ""):
        _missing.add("stdout")
    for number, (name, mode) in enumerate((("stdin", "r"), ("stdout", "w"), ("stderr", "w"))):
        if not _serves(number, os.O_RDONLY if mode == "r" else os.O_WRONLY):
            _missing.add(name)
            null = os.open(os.devnull, os.O_RDWR)
            os.dup2(null, number)
            os.set_inheritable(number, True)
            if null != number:
                os.close(null)
        if getattr(sys, name) is None:
            setattr(sys, name, open(number, mode, closefd=False))  # noqa: SIM115  as long as the process lives
    own = sys.__stderr__
    if own is not None and sys.stderr is own:  # tests replace sys.stderr by their own stream
        raw = _Stderr(own.fileno(), "w", closefd=False)
        sys.stderr = io.TextIOWrapper(io.BufferedWriter(raw), own.encoding, "backslashreplace", line_buffering=True)
