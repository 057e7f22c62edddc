# SPDX-License-Identifier: BSD-3-Clause
"""Where a call puts its results: the caller's folder, or a temporary one that is removed together with the result."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from moscope.api.values import place
from moscope.failures import user_error

Place = str | os.PathLike[str]


@dataclass(frozen=True)
class Folder:
    """A folder for results. A temporary folder is removed when `kept` is released, so its user must hold `kept`."""

    path: Path
    kept: object = None


@contextmanager
def folder_for(out: Place | None, what: str) -> Iterator[Folder]:
    """`out`, or a temporary folder. A call that fails leaves no temporary folder behind. A full disk or an
    unusable path is a user error."""
    place("--out", out)
    kept = None if out is not None else tempfile.TemporaryDirectory(prefix=f"moscope-{what}-")
    try:
        yield Folder(Path(kept.name if kept else out or ""), kept)
    except BaseException as error:
        if kept:
            kept.cleanup()
        if isinstance(error, OSError) and (of_user := user_error(error)):
            raise of_user from error
        raise
