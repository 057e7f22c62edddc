# SPDX-License-Identifier: BSD-3-Clause
"""Files that are whole at any time: written beside their place, then renamed onto it.

Used before anything is installed too, so standard library only. Folders of results are `jsonio.atomic_dir`'s.
"""

import os
import socket
import threading
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def written_aside(path: Path) -> Iterator[Path]:
    """The name of a file to write, which becomes `path` when the block ends well and is removed otherwise.

    No two writers share such a name: not two threads, and not two hosts that share a file system. The last to end is what stays.
    """
    by = f"{socket.gethostname()[:40]}.{os.getpid()}.{threading.get_native_id()}"
    aside = path.with_name(f".{path.name[:40]}.{zlib.crc32(os.fsencode(path.name)):08x}.{by}")  # never longer than a name may be
    try:
        yield aside
        aside.replace(path)
    finally:
        aside.unlink(missing_ok=True)


def write_whole(path: Path, content: str | bytes) -> None:
    """Text is written in UTF-8. Raises OSError."""
    with written_aside(path) as aside:
        aside.write_bytes(content.encode() if isinstance(content, str) else content)
