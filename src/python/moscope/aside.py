# SPDX-License-Identifier: BSD-3-Clause
"""Files that are complete at any time: each is written under another name in its folder, then renamed.

Also used before anything is installed, so this module needs only the standard library. For folders of results
see `jsonio.atomic_dir`.
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
    """The name of a file to write. The file becomes `path` if the block ends without an exception, and is removed otherwise.

    No two writers share such a name: not two threads, and not two hosts that share a file system. The file of the last one to
    end remains.
    """
    by = f"{socket.gethostname()[:40]}.{os.getpid()}.{threading.get_native_id()}"
    aside = path.with_name(f".{path.name[:40]}.{zlib.crc32(os.fsencode(path.name)):08x}.{by}")  # never longer than file names may be
    try:
        yield aside
        aside.replace(path)
    except OSError as error:
        if error.errno and error.filename in (None, str(aside)):  # a write names no file
            error.filename = str(path)
        raise
    finally:
        aside.unlink(missing_ok=True)


def write_whole(path: Path, content: str | bytes) -> None:
    """Writes a file as `written_aside` does; text is encoded in UTF-8. Raises OSError."""
    with written_aside(path) as aside:
        aside.write_bytes(content.encode() if isinstance(content, str) else content)
