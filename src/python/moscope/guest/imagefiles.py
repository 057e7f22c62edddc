# SPDX-License-Identifier: BSD-3-Clause
"""Files of a root image on the host, for the symbols of its programs: taken out of the squashfs when asked for, and kept beside it."""

import os
import subprocess
import tempfile
from pathlib import Path, PurePosixPath

from moscope.errors import UserError
from moscope.guest import rootimage

# Before paths, as the guest's file systems are named: the image, and what the guest mounts over it to write to (init.sh).
MOUNTED = ("squashfs", "overlay")
SECONDS = 60


class ImageFiles:
    """`image`: made by moscope (rootimage.py); a name's file is in the folder of the image's name with `.files`."""

    def __init__(self, image: Path) -> None:
        self._image = image
        self._folder = image.with_suffix(".files")

    def find(self, file: str) -> Path | None:
        """The host's copy of `squashfs:/usr/bin/program`; None if the image has no such file, or none can be taken out here."""
        kind, _, name = file.partition(":")
        path = PurePosixPath(name)
        if kind not in MOUNTED or not path.is_absolute() or ".." in path.parts:
            return None
        target = self._folder / path.relative_to("/")
        if target.is_file():
            return target
        try:
            program = rootimage.squashfs_tool("unsquashfs", lambda line: None)
            target.parent.mkdir(parents=True, exist_ok=True)
            with tempfile.NamedTemporaryFile(dir=target.parent, prefix=".taken-", delete=False) as partial:
                done = subprocess.run([str(program.path), "-cat", str(self._image), str(path)[1:]], stdout=partial,
                                      stderr=subprocess.DEVNULL, env=program.environment(), timeout=SECONDS, check=False)
        except (OSError, UserError, subprocess.TimeoutExpired):
            return None
        if done.returncode or not os.path.getsize(partial.name):
            os.unlink(partial.name)
            return None
        os.replace(partial.name, target)
        return target
