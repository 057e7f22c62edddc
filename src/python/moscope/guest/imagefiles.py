# SPDX-License-Identifier: BSD-3-Clause
"""Host copies of files in a root image, for the symbols of its programs. A file is extracted from the squashfs when it is needed,
and kept beside it."""

import subprocess
from functools import cached_property
from pathlib import Path, PurePosixPath

from moscope.aside import write_whole
from moscope.errors import UserError
from moscope.guest import rootimage

# Names of the guest's file systems before paths: the image, and the writable layer that the guest mounts over it (init.sh).
MOUNTED = ("squashfs", "overlay")
ELF = b"\x7fELF"


class ImageFiles:
    """The files of `image`, which moscope has made (rootimage.py). Extracted files are in a folder with the image's name and the
    suffix `.files`."""

    def __init__(self, image: Path) -> None:
        self._image = image
        self._folder = image.with_suffix(".files")

    def find(self, file: str) -> Path | None:
        """The host's copy of `squashfs:/usr/bin/program`; None if the image has no such program, or if this system cannot extract
        it."""
        kind, _, name = file.partition(":")
        path = PurePosixPath(name)
        if kind not in MOUNTED or not path.is_absolute() or ".." in path.parts:
            return None
        target = self._folder / path.relative_to("/")
        if target.is_file():
            return target
        try:
            content = self._content(str(path)[1:]) if self._tool else b""
            if not content.startswith(ELF):
                return None
            target.parent.mkdir(parents=True, exist_ok=True)
            write_whole(target, content)
        except OSError:
            return None
        return target

    @cached_property
    def _tool(self) -> rootimage.Program | None:
        try:
            return rootimage.squashfs_tool("unsquashfs", lambda line: None)
        except (OSError, UserError):
            return None

    def _content(self, path: str) -> bytes:
        """The content of a file; empty if the file does not exist or is no program."""
        assert self._tool
        with subprocess.Popen([str(self._tool.path), "-no-wildcards", "-cat", str(self._image), path], stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL, env=self._tool.environment()) as reader:
            assert reader.stdout
            first = reader.stdout.read(len(ELF))
            if first != ELF:
                reader.kill()
                return b""
            rest = reader.stdout.read()
        return first + rest if reader.returncode == 0 else b""
