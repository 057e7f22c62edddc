# SPDX-License-Identifier: BSD-3-Clause
"""A Debian root image for the virtio disk: a squashfs with a compiler, interpreters and test programs.

mmdebstrap makes it from the distribution's archive and runs from its unpacked package where it is not installed.
Files in the image are not compressed: the guest would spend its simulated time on unpacking them.
"""

import hashlib
import json
import os
import shlex
import shutil
import signal
import subprocess
from dataclasses import dataclass
from pathlib import Path

from moscope import groups
from moscope.aside import write_whole
from moscope.errors import UserError
from moscope.guest import packages
from moscope.guest.packages import Say

SUITE = "bookworm"
INCLUDED = ("gcc", "libc6-dev", "perl", "python3", "stress-ng", "util-linux", "xz-utils")
BUILD_SECONDS = 3600
CLEANUP_SECONDS = 120  # 17 were seen in the middle of the packages' installation
# Nothing is compressed, and equal files are stored separately: with deduplication, mksquashfs 4.5.1 mixed up blocks of files in
# three of ten images that held PostgreSQL's databases, which are full of files of equal length.
SQUASHED = ("-noI", "-noD", "-noF", "-noX", "-no-duplicates")
# These folders are half of the files, and nothing in a guest reads them.
LEFT_OUT = ("usr/share/doc", "usr/share/man", "usr/share/locale", "usr/share/info")


@dataclass(frozen=True)
class RootImage:
    path: Path
    sha256: str


def find(say: Say, included: tuple[str, ...] = INCLUDED, script: str = "") -> RootImage:
    """The image that holds these packages, from the cache or made now (some minutes, some hundred megabytes). `script` is a shell
    script. It runs in the image's tree after the packages are installed; the files that it creates are part of the image."""
    recipe = _recipe(included, script)
    with packages.locked(f"root-{recipe}"):
        if image := kept(included, script):
            return image
        image, chosen = _make(say, included, script), _chosen(recipe)
        chosen.parent.mkdir(parents=True, exist_ok=True)
        write_whole(chosen, json.dumps({"sha256": image.sha256}))
        return image


def kept(included: tuple[str, ...], script: str = "") -> RootImage | None:
    """The image that holds these packages, if the cache has it."""
    try:
        digest = str(json.loads(_chosen(_recipe(included, script)).read_text(encoding="utf-8"))["sha256"])
    except (FileNotFoundError, ValueError, KeyError, TypeError):  # none, or one that a crash of the host has left empty
        return None
    return RootImage(_place(digest), digest) if _place(digest).is_file() else None


def _recipe(included: tuple[str, ...], script: str) -> str:
    made_from = [SUITE, sorted(included), LEFT_OUT, SQUASHED, *([script] if script else [])]
    return hashlib.sha256(json.dumps(made_from).encode()).hexdigest()[:16]


def _chosen(recipe: str) -> Path:
    return packages.cache() / "chosen" / f"root-{recipe}.json"


def _place(digest: str) -> Path:
    return packages.cache() / "root" / f"{digest[:32]}.squashfs"


def _make(say: Say, included: tuple[str, ...], script: str) -> RootImage:
    instead = "--disk FILE names an image of your own"
    mmdebstrap = _program("mmdebstrap", "mmdebstrap", say, instead)
    mksquashfs = squashfs_tool("mksquashfs", say, instead)
    say(f"making a root image with {', '.join(included)} (once; some minutes)")
    with packages.scratch(packages.cache() / "root", f"root-{_recipe(included, script)}") as scratch:
        tree, image = scratch / "tree.tar", scratch / "image"
        # The tree is a tar file, which can hold files of other users without root privileges.
        left_out = [f"--dpkgopt=path-exclude=/{folder}/*" for folder in LEFT_OUT]
        # The script is passed as text: in a user namespace, its file may not be readable.
        complete = [f'--customize-hook=chroot "$1" /bin/sh -ec {shlex.quote(script)} </dev/null'] if script else []
        _run(mmdebstrap, ["--quiet", "--variant=minbase", f"--include={','.join(sorted(included))}", *left_out, *complete, SUITE,
              str(tree)], None, instead)
        _squash(mksquashfs, tree, image, instead)
        digest = packages.digest_of(image)
        image.replace(_place(digest))
        return RootImage(_place(digest), digest)


def squashfs_tool(name: str, say: Say, instead: str = "") -> "Program":
    """`mksquashfs` or `unsquashfs`."""
    return _program(name, "squashfs-tools", say, instead, library="liblzo2-2")


def _squash(mksquashfs: "Program", tree: Path, image: Path, instead: str) -> None:
    _run(mksquashfs, ["-", str(image), "-tar", *SQUASHED, "-no-progress", "-quiet", "-processors", "2"], tree, instead)


@dataclass(frozen=True)
class Program:
    """A program of the system, or of a package unpacked into the cache; `libraries` is the folder of a library that the system
    may lack."""

    path: Path
    libraries: Path | None = None

    def environment(self) -> dict[str, str]:
        """The environment for the program. The helpers of an unpacked program are found on the path."""
        path = os.pathsep.join([os.environ.get("PATH", "/usr/bin:/bin"), "/usr/sbin", "/sbin", str(self.path.parent)])
        found = {**os.environ, "PATH": path, "LC_ALL": "C"}
        return {**found, "LD_LIBRARY_PATH": str(self.libraries)} if self.libraries else found


def _program(name: str, package: str, say: Say, instead: str, library: str = "") -> Program:
    """Finds the program. `library` is the package of a shared library that the program needs."""
    if found := shutil.which(name):
        return Program(Path(found))
    path = packages.fetch(package, say, instead).tree / "usr/bin" / name
    if not library:
        return Program(path)
    return Program(path, next(packages.fetch(library, say, instead).tree.rglob("*.so.*")).parent)


def _run(program: Program, arguments: list[str], given: Path | None, instead: str) -> None:
    # The epoch replaces the current time in everything that is written, so equal packages give equal images.
    env = {**program.environment(), "DEBIAN_FRONTEND": "noninteractive", "SOURCE_DATE_EPOCH": "1286150400"}
    try:
        with open(given or os.devnull, "rb") as stdin, subprocess.Popen(
                [str(program.path), *arguments], stdin=stdin, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                errors="replace", env=env, start_new_session=True) as running:
            try:
                said, wrong = running.communicate(timeout=BUILD_SECONDS)
            except BaseException:  # mmdebstrap has file systems mounted in its tree, and waits for what it runs there
                groups.end(running, signal.SIGTERM, CLEANUP_SECONDS)
                raise
        problem = "\n".join((wrong or said).strip().splitlines()[-5:]) if running.returncode else ""
    except (OSError, subprocess.TimeoutExpired) as error:
        problem = str(error)
    if problem:
        raise UserError(f"{program.path.name}: the root image could not be made: expected a system that can make it, or {instead}:"
                        f"\n{problem}")
