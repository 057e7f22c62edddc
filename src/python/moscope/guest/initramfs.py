# SPDX-License-Identifier: BSD-3-Clause
"""The initial file system: static busybox with its applets, the modules that the machine's devices need, `init.sh`.

The bytes depend on nothing but what goes in, so the same kernel, busybox and script give the same file; it is kept
under its digest.
"""

import hashlib
import os
import shutil
import subprocess
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from moscope.aside import write_whole
from moscope.errors import UserError
from moscope.guest import packages
from moscope.guest.cpio import Archive
from moscope.guest.kernel import Kernel
from moscope.guest.packages import Say

# The modules that init.sh loads, where the kernel has them as modules.
MODULES = ("virtio_pci", "virtio_blk", "virtio_rng", "virtio_net", "squashfs", "overlay")
KEPT, WEEK = 24, 7 * 24 * 3600  # files; seconds
BUSYBOX_PACKAGE = "busybox-static"
SCRIPT = "moscope/script"
READY = "moscope: ready"
PROMPT = "moscope# "
SCRIPT_ENDED = "moscope: script ended with status "


@dataclass(frozen=True)
class Initramfs:
    path: Path
    sha256: str


def build(kernel: Kernel, say: Say, script: Path | None = None, extra: Mapping[str, Path] | None = None) -> Initramfs:
    """An initial file system for `kernel`; `extra` are more files, by their names under /run/moscope in the guest, or by whole paths."""
    archive = Archive()
    for folder in ("proc", "sys", "dev", "run", "tmp", "root", "moscope"):
        archive.folder(folder)
    # The kernel opens these for the first process before devtmpfs is mounted.
    archive.character_device("dev/console", 5, 1)
    archive.character_device("dev/null", 1, 3, 0o666)
    archive.file("init", Path(__file__).with_name("init.sh").read_bytes(), 0o755)
    program = busybox(say)
    archive.file("bin/busybox", program.read_bytes(), 0o755)  # it runs init.sh, even if a package brings another busybox
    _add_root(archive, {name: path for name, path in (extra or {}).items() if name.startswith("/")})
    _add_applets(archive, program)
    _add_modules(archive, kernel)
    files = {name: path for name, path in (extra or {}).items() if not name.startswith("/")}
    files |= {SCRIPT.removeprefix("moscope/"): script} if script else {}
    for name, path in sorted(files.items()):
        try:
            archive.file(f"moscope/{name}", path.read_bytes(), 0o755)
        except OSError as error:
            raise UserError(f"{path}: {error.strerror}: expected a readable file") from error
    return _keep(archive.bytes())


def _add_root(archive: Archive, files: Mapping[str, Path]) -> None:
    """Files at their whole paths; links as such. They take precedence over the applets of busybox, which get only the remaining
    names."""
    for name, path in sorted(files.items()):
        try:
            if name.lstrip("/") in archive:
                continue
            if path.is_symlink() and not _is_library(path):
                archive.link(name, os.readlink(path))
            elif path.is_dir():
                archive.folder(name)
            else:
                archive.file(name, path.read_bytes(), 0o755 if os.access(path, os.X_OK) else 0o644)
        except OSError as error:
            raise UserError(f"{path}: {error.strerror}: expected a readable file") from error


def _is_library(path: Path) -> bool:
    """Whether a link is the name of a library of this system. Such a link is packed as the file that it leads to."""
    return packages.cache() not in path.parents and ".so" in path.name


def busybox(say: Say) -> Path:
    """A statically linked busybox: Debian's, or this system's where there is no apt."""
    if shutil.which("apt-get"):
        package = packages.fetch(BUSYBOX_PACKAGE, say, "--initrd FILE names an initial file system of your own")
        return next(p for p in (package.tree / "bin/busybox", package.tree / "usr/bin/busybox") if p.is_file())
    found = shutil.which("busybox")
    if found and _is_static(Path(found)):
        return Path(found)
    raise UserError("busybox: this system has neither apt-get nor a statically linked busybox: expected one to be installed, or "
                    "--initrd FILE with an initial file system of your own")


def _is_static(path: Path) -> bool:
    # A dynamic executable names its interpreter in the program headers, which lie in the first page.
    return b"ld-linux" not in path.read_bytes()[:4096] and b"ld-musl" not in path.read_bytes()[:4096]


def _add_applets(archive: Archive, program: Path) -> None:
    listed = subprocess.run([program, "--list-full"], capture_output=True, text=True, check=False)
    if listed.returncode != 0:
        raise UserError(f"{program}: does not list its applets: expected a busybox for this processor")
    for applet in listed.stdout.split():
        if applet not in archive and not applet.startswith("linuxrc"):
            archive.link(applet, "/bin/busybox")


def _add_modules(archive: Archive, kernel: Kernel) -> None:
    """Adds the modules in one folder, /lib/modules, and for each module that init.sh may load the order of loading."""
    if kernel.modules is None:
        return
    for wanted in MODULES:
        if not kernel.modules.knows(wanted):
            continue
        order = kernel.modules.order(wanted)
        if order:
            archive.file(f"lib/modules/order/{wanted}", "".join(f"{m}\n" for m in order).encode())
        for module in order:
            path = f"lib/modules/{module}.ko"
            if path not in archive:
                archive.file(path, kernel.modules.data(module))


def _keep(content: bytes) -> Initramfs:
    folder = packages.cache() / "initramfs"
    folder.mkdir(parents=True, exist_ok=True)
    digest = hashlib.sha256(content).hexdigest()
    path = folder / f"{digest[:32]}.cpio"
    write_whole(path, content)
    _forget_the_oldest(folder)
    return Initramfs(path, digest)


def _forget_the_oldest(folder: Path) -> None:
    """Removes files that are not among the KEPT newest and are older than a week, and files of that age which a killed process was
    writing. A running sweep may still need newer ones."""
    written: dict[Path, float] = {}
    for path in folder.iterdir():
        with suppress(FileNotFoundError):  # another start may remove it at the same time
            written[path] = path.stat().st_mtime
    whole = [path for path in written if path.suffix == ".cpio"]
    last = sorted(whole, key=lambda p: written[p], reverse=True)[:KEPT]
    for path in written:
        if path not in last and written[path] < time.time() - WEEK:
            path.unlink(missing_ok=True)
