# SPDX-License-Identifier: BSD-3-Clause
"""The folder of a sweep (docs/sweeps.md). A finished point is `points/DIGEST/`, whole or absent; the digest covers all that went into it,
so that a point is found again by any later start, whatever other points the sweep has by then.
"""

import json
import os
import shutil
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from moscope import jsonio, locks
from moscope.aside import write_whole
from moscope.errors import UserError

RESULT, DOCUMENT = "result.json", "document.json"
SILENT_S = 600.0  # naming the lines of 48 cores took three minutes in one step
FOLDERS = ("points", "failed", "marks", "batches", "boots", "locks", "work", "states", "workflow")


class Store:
    """`root` is the sweep's folder."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._whole: set[str] = set()  # points whose result was read once

    @property
    def config(self) -> Path:
        return self.root / "workflow" / "config.json"

    def open(self) -> None:
        """Makes the folder, or goes on in one that is a sweep's already."""
        jsonio.check_replaceable(self.root, adds=True)
        if not self.config.exists() and (others := [p.name for p in self.root.glob("[!.]*") if p.name not in FOLDERS]):
            raise UserError(f"{self.root}: has {min(others)} of another command: expected the folder of a sweep, or one that is empty")
        try:
            for name in FOLDERS:
                (self.root / name).mkdir(parents=True, exist_ok=True)
            (self.root / jsonio.MARK).touch()
        except OSError as error:
            raise UserError(f"{self.root}: {error.strerror}: expected a folder that can be written") from error

    def point(self, digest: str) -> Path:
        return self.root / "points" / digest

    def result(self, digest: str) -> dict[str, Any] | None:
        return read(self.point(digest) / RESULT)

    def done(self, digest: str) -> bool:
        """Whether the point has a result that can be read; a crash of the host may leave an empty one."""
        if digest not in self._whole and self.result(digest) is not None:
            self._whole.add(digest)
        return digest in self._whole and (self.point(digest) / RESULT).exists()

    def mark(self, digest: str) -> None:
        """What Snakemake takes for the point's output: it deletes outputs that it did not expect, and a result is never to be deleted."""
        mark = self.root / "marks" / digest
        mark.parent.mkdir(exist_ok=True)
        if self.done(digest):
            mark.touch()
        else:
            mark.unlink(missing_ok=True)

    def failure(self, digest: str) -> dict[str, Any] | None:
        return read(self.root / "failed" / f"{digest}.json")

    def fail(self, digest: str, document: dict[str, Any]) -> None:
        write_whole(self.root / "failed" / f"{digest}.json", jsonio.dumps(document) + "\n")

    def forget_failures(self) -> None:
        for path in (self.root / "failed").glob("*.json"):
            path.unlink(missing_ok=True)

    def clean(self) -> None:
        """Removes what ended processes left. Jobs of an earlier start may still run on a cluster, and hold their locks."""
        for path in (self.root / "locks").iterdir():
            with path.open("w") as handle:
                if not locks.take(handle, wait=False):
                    continue
                for left in (self.root / "work").glob(f"{path.name}.*"):
                    shutil.rmtree(left, ignore_errors=True)
                (self.root / "states" / path.name).unlink(missing_ok=True)
                path.unlink()
        for folder in (self.root / "points").iterdir():
            if folder.is_dir() and not any(folder.iterdir()):
                folder.rmdir()

    def report_state(self, name: str, text: str) -> None:
        """What the point or boot `name` is at, for whoever watches the sweep."""
        (self.root / "states").mkdir(exist_ok=True)
        write_whole(self.root / "states" / name, text)

    @contextmanager
    def reporting(self, name: str) -> Iterator[None]:
        try:
            yield
        finally:
            (self.root / "states" / name).unlink(missing_ok=True)

    def states(self) -> list[str]:
        """What all points and boots under way are at, each that has not been silent for long: it may have been killed."""
        found = []
        for path in sorted((self.root / "states").glob("[!.]*")):
            with suppress(OSError):
                if time.time() - path.stat().st_mtime < SILENT_S:
                    found.append(path.read_text(encoding="utf-8"))
        return found

    @contextmanager
    def new_point(self, digest: str) -> Iterator[Path]:
        """A folder that becomes the point's when the block ends well. Of two processes that make it, the first one's stays. What has no
        result that can be read is replaced."""
        partial = self.root / "work" / f"{digest}.{socket.gethostname()}.{os.getpid()}"
        shutil.rmtree(partial, ignore_errors=True)  # of one that was killed, in a process of the same number
        partial.mkdir(parents=True)
        try:
            yield partial
            try:
                partial.rename(self.point(digest))
            except OSError:
                if not self.done(digest):
                    self.point(digest).rename(partial.with_suffix(".broken"))
                    partial.rename(self.point(digest))
        finally:
            for left in (partial, partial.with_suffix(".broken")):
                shutil.rmtree(left, ignore_errors=True)

    @contextmanager
    def locked(self, name: str) -> Iterator[None]:
        """Held by who makes the point or boot `name`; file systems without locks do without."""
        path = self.root / "locks" / name
        path.parent.mkdir(exist_ok=True)
        with path.open("w") as handle:
            locks.take(handle)
            yield


def read(path: Path) -> dict[str, Any] | None:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return found if isinstance(found, dict) else None
