# SPDX-License-Identifier: BSD-3-Clause
"""A cache of booted guests: machines at the first prompt of their shell, by the digest of all inputs.

The key covers kernel, initial file system, command line, seed, and the machine as its firmware describes it. A changed
workload program or another core count therefore gives another checkpoint. Protocol and link latencies are not part of the
key, because boots in functional mode do not depend on them. A file that the engine rejects is replaced.
"""

import hashlib
import json
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from moscope import locks, paths
from moscope.aside import write_whole
from moscope.boot import plan
from moscope.boot.engine import checkpoint_config
from moscope.guest import initramfs, kernel
from moscope.runs import engine
from moscope.runs.guest import Guest, Progress

if TYPE_CHECKING:
    from moscope.runs.inputs import Inputs

# If there are more files than this when another is made, those that were unused for the longest time are removed.
KEPT = 24
WHOLE = (".ckpt", ".console", ".lock")  # other files are under way
MARKERS = [initramfs.PROMPT, plan.PANIC]


@dataclass(frozen=True)
class Start:
    """A configuration for the engine, and the checkpoint from which it continues."""

    config: dict[str, Any]
    checkpoint: Path
    console: bytes  # what the boot showed
    kernel: kernel.Kernel


def folder() -> Path:
    return paths.cache_dir() / "guest" / "checkpoints"


def configuration(made_from: "Inputs", append: str, cores: int, seed: int) -> dict[str, Any]:
    """The configuration of a machine to boot (moscope.system/1)."""
    machine, chosen, image = made_from.machine, made_from.kernel, made_from.image
    info = {"machine": machine.name, "kernel": chosen.document(), "append": append, "initrd": image.sha256,
            "checkpoint_at": initramfs.PROMPT}
    return {**plan.platform(machine), "cores": cores, "seed": seed, "restore": False, "append": append, "info": info,
            "kernel": str(chosen.image.absolute()), "initrd": str(image.path), "disk": str(made_from.disk.path) if made_from.disk else "",
            "disk_read_only": False, "markers": MARKERS, **({"nic": made_from.nic} if made_from.nic else {})}


def key(config: dict[str, Any]) -> str:
    """The digest of everything that determines the machine's state at its prompt."""
    from moscope import _engine

    same = {k: v for k, v in config.items() if k not in ("kernel", "initrd", "restore")}
    same["format"] = _engine.CHECKPOINT_VERSION
    return hashlib.sha256(json.dumps(same, sort_keys=True).encode()).hexdigest()[:32]


def at_prompt(config: dict[str, Any], chosen: kernel.Kernel, report: Callable[[Progress], None],
              create: Callable[[dict[str, Any]], engine.System] = engine.create) -> Start:
    """The booted machine, from the cache or from a boot."""
    path = folder() / f"{key(config)}.ckpt"
    console = path.with_suffix(".console")
    path.parent.mkdir(parents=True, exist_ok=True)
    with _locked(path.with_suffix(".lock")):
        if not (path.exists() and console.exists()) or not _readable(path):
            _remove_parts(path)
            _boot(config, path, console, report, create)
            _forget_the_oldest()
        os.utime(path)
        shown = console.read_bytes()
    # The loader would use the command line, but restored memory contains it already.
    resumed = {**config, "restore": True, "kernel": "", "initrd": ""}
    return Start(resumed, path, shown, chosen)


def restored(booted: Callable[[], Start], create: Callable[[Start], engine.System]) -> tuple[Start, engine.System]:
    """A start, and the machine that `create` makes for it, restored from the start's checkpoint. If the engine rejects a cached
    checkpoint, the file is damaged, or the engine's devices have changed: the file is removed, and the guest is booted once more."""
    from moscope.errors import UserError

    start = booted()
    system = create(start)
    try:
        system.restore(str(start.checkpoint))
        return start, system
    except UserError:
        del system  # frees its memory before another machine is created
    start.checkpoint.unlink(missing_ok=True)
    start = booted()
    system = create(start)
    system.restore(str(start.checkpoint))
    return start, system


def _readable(path: Path) -> bool:
    from moscope.errors import UserError

    try:
        checkpoint_config(path)
    except UserError:
        return False
    return True


def _boot(config: dict[str, Any], path: Path, console: Path, report: Callable[[Progress], None],
          create: Callable[[dict[str, Any]], engine.System]) -> None:
    guest = Guest(create(config), report)
    guest.phase("boot")
    guest.until_marker(initramfs.PROMPT, "the boot")
    write_whole(console, guest.log)
    guest.system.save(str(path))


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Holds the lock of a checkpoint, so that two points that start from the same one boot only once. An interruption ends the
    wait."""
    with path.open("w") as handle:
        while not locks.take(handle, wait=False):
            time.sleep(0.1)
        yield


def _remove_parts(path: Path) -> None:
    """Removes what processes have left that were killed as they wrote this checkpoint (src/board/checkpoint.cc). Its lock is held."""
    if locks.held(path.with_suffix(".lock")):  # without locks others may write it
        for left in path.parent.glob(f"{path.name}.part-*"):
            left.unlink(missing_ok=True)


def _forget_the_oldest() -> None:
    """Removes the checkpoints that were unused for the longest time, except those whose lock is held, and what killed processes were
    writing a week ago. Other processes may do the same at the same time, and use the files."""
    used = {path: at for path in folder().glob("*.ckpt") if (at := _last_used(path)) is not None}
    for path in sorted(used, key=lambda p: used[p], reverse=True)[KEPT:]:
        with path.with_suffix(".lock").open("w") as handle:
            if locks.take(handle, wait=False) and _last_used(path) == used[path]:
                path.unlink(missing_ok=True)
                path.with_suffix(".console").unlink(missing_ok=True)
    for path in folder().iterdir():
        written = None if path.suffix in WHOLE else _last_used(path)
        if written is not None and written < time.time_ns() - initramfs.WEEK * 10**9:
            path.unlink(missing_ok=True)


def _last_used(path: Path) -> int | None:
    """The time of the last use in nanoseconds; None if the file is gone."""
    try:
        return path.stat().st_mtime_ns
    except FileNotFoundError:
        return None
