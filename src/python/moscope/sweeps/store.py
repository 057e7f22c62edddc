# SPDX-License-Identifier: BSD-3-Clause
"""The folder of a sweep (docs/sweeps.md). A finished point is in `points/DIGEST/`, complete or absent. The digest covers all of its
inputs, so any later start finds the point again, whatever other points the sweep then has.
"""

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
from moscope.failures import expected

RESULT, DOCUMENT = "result.json", "document.json"
SILENT_S = 600.0  # a single step may take long: naming the lines of 48 cores took three minutes
FOLDERS = ("points", "failed", "marks", "batches", "boots", "locks", "work", "states", "workflow")


class Store:
    """`root` is the sweep's folder."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._whole: set[str] = set()  # points whose result was read once

    @property
    def config(self) -> Path:
        return self.root / "workflow" / "config.json"

    def check(self) -> None:
        """UserError if the folder is not a sweep's, and not empty."""
        jsonio.check_replaceable(self.root, adds=True)
        if not self.config.exists() and (others := [p.name for p in self.root.glob("[!.]*") if p.name not in FOLDERS]):
            raise UserError(f"{self.root}: has {min(others)} of another command: expected the folder of a sweep, or an empty one")

    def open(self) -> None:
        """Creates the folder, or continues in one that is already a sweep's."""
        self.check()
        try:
            for name in FOLDERS:
                (self.root / name).mkdir(parents=True, exist_ok=True)
            (self.root / jsonio.MARK).touch()
        except OSError as error:
            raise UserError(f"{self.root}: {error.strerror}: expected {expected(error, 'a writable folder')}") from error

    def point(self, digest: str) -> Path:
        return self.root / "points" / digest

    def boot(self, key: str) -> Path:
        """The booted guest that points start from."""
        return self.root / "boots" / f"{key}.ckpt"

    def listed(self) -> set[str]:
        """The digests of all points of the last start."""
        points = (read(self.config) or {}).get("points")
        return set(points) if isinstance(points, dict) else set()

    def result(self, digest: str) -> dict[str, Any] | None:
        return read(self.point(digest) / RESULT)

    def done(self, digest: str) -> bool:
        """Whether the point has a readable result; after a crash of the host, it may be empty."""
        if digest not in self._whole and self.result(digest) is not None:
            self._whole.add(digest)
        return digest in self._whole and (self.point(digest) / RESULT).exists()

    def mark(self, digest: str) -> None:
        """Writes or removes the file that Snakemake takes for the point's output. Snakemake deletes outputs that it did not
        expect, and a result must never be deleted."""
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
        """Removes files that ended processes have left. Jobs of an earlier start may still run on a cluster and hold their locks."""
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
        """Records the state of the point or boot `name` for displays of the sweep."""
        (self.root / "states").mkdir(exist_ok=True)
        write_whole(self.root / "states" / name, text)

    @contextmanager
    def reporting(self, name: str) -> Iterator[None]:
        try:
            yield
        finally:
            (self.root / "states" / name).unlink(missing_ok=True)

    def states(self) -> list[str]:
        """The states of all running points and boots. Those that have been silent for long are left out, because they may have
        been killed."""
        found = []
        for path in sorted((self.root / "states").glob("[!.]*")):
            with suppress(OSError):
                if time.time() - path.stat().st_mtime < SILENT_S:
                    found.append(path.read_text(encoding="utf-8"))
        return found

    @contextmanager
    def new_point(self, digest: str) -> Iterator[Path]:
        """A folder that becomes the point's when the block ends well. If two processes make the same point, that of the first one
        stays. A folder without a readable result is replaced."""
        partial = self.root / "work" / f"{digest}.{socket.gethostname()}.{os.getpid()}"
        shutil.rmtree(partial, ignore_errors=True)  # left by a killed process that had the same number
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
        """A lock held by the process that makes the point or boot `name`. On file systems without locks, there is none."""
        path = self.root / "locks" / name
        path.parent.mkdir(exist_ok=True)
        with path.open("w") as handle:
            locks.take(handle)
            yield


def read(path: Path) -> dict[str, Any] | None:
    try:
        found = jsonio.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return found if isinstance(found, dict) else None
