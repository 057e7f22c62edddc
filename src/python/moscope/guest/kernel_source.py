# SPDX-License-Identifier: BSD-3-Clause
"""The source that the project's kernel is built from: Debian's package, or a tree of the user's, with the patch series."""

import hashlib
import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from moscope.errors import UserError
from moscope.guest import packages
from moscope.guest.packages import Say

PACKAGE = "linux-source-6.1"
# Half of the files of the source. No build reads them, and each costs time to write and to remove.
OTHER_ARCHITECTURES = ("alpha", "arc", "arm", "arm64", "csky", "hexagon", "ia64", "loongarch", "m68k", "microblaze", "mips", "nios2",
                       "openrisc", "parisc", "powerpc", "riscv", "s390", "sh", "sparc", "um", "xtensa")
LEFT_OUT = ("tools/testing", "tools/perf", *(f"Documentation/*.{end}" for end in ("rst", "yaml", "txt", "svg")),
            *(f"arch/{name}/*.{end}" for name in OTHER_ARCHITECTURES for end in ("[chS]", "dts", "dtsi")), "sound/*.[ch]",
            *(f"drivers/{name}/*.[ch]" for name in ("gpu/drm", "media", "net/ethernet", "net/wireless", "infiniband", "staging", "iio")))


@dataclass(frozen=True)
class Source:
    """`identity` changes whenever the files do; `version` is for people."""

    version: str
    identity: str
    place: Path

    def unpack(self, into: Path, say: Say) -> None:
        """The tree, unpatched, at `into`, which is empty."""
        if self.place.is_dir():
            say(f"copying {self.place}")
            shutil.copytree(self.place, into, symlinks=True, dirs_exist_ok=True, ignore=shutil.ignore_patterns(".git"))
            return
        say(f"unpacking {self.place.name}")
        command = ["tar", "-xJf", str(self.place), "-C", str(into), "--strip-components=1",
                   "--anchored", *(f"--exclude={PACKAGE}/{pattern}" for pattern in LEFT_OUT)]
        got = subprocess.run(command, capture_output=True, text=True, check=False)
        if got.returncode:
            raise UserError(f"{self.place}: cannot be unpacked ({got.stderr.strip().splitlines()[-1:]}): expected free disk space "
                            "and an undamaged archive (remove its folder to fetch it again)")


def debian(say: Say) -> Source:
    package = packages.fetch(PACKAGE, say, "kernel build --source DIR builds from a tree of your own")
    archive = package.tree / "usr/src" / f"{PACKAGE}.tar.xz"
    if not archive.is_file():
        raise UserError(f"{archive}: is gone: expected the archive (remove the folder {package.tree} to fetch it again)")
    return Source(f"{package.name} {package.version}", package.sha256, archive)


def own(tree: Path) -> Source:
    """A tree of the user's; it is copied, never changed. Sizes and times of its files represent their content."""
    version = version_of(tree)
    digest = hashlib.sha256()
    for folder, folders, files in os.walk(tree):
        folders[:] = sorted(f for f in folders if f != ".git")
        for name in sorted(files):
            status = os.lstat(os.path.join(folder, name))
            digest.update(f"{os.path.relpath(os.path.join(folder, name), tree)} {status.st_size} {status.st_mtime_ns}\n".encode())
    return Source(f"{version} from {tree}", digest.hexdigest(), tree.absolute())


def version_of(tree: Path) -> str:
    """The version in a kernel tree's Makefile; only 6.1.y is accepted."""
    if not tree.is_dir():
        fault = "is not a folder" if tree.exists() else "does not exist"
        raise UserError(f"--source: {tree}: {fault}: expected the folder of a Linux source tree, 6.1.y")
    makefile = tree / "Makefile"
    text = makefile.read_text(encoding="utf-8", errors="replace")[:1000] if makefile.is_file() else ""
    parts = [re.search(rf"^{name} = (\d+)$", text, re.MULTILINE) for name in ("VERSION", "PATCHLEVEL", "SUBLEVEL")]
    if not all(parts):
        raise UserError(f"--source: {tree}: is not a Linux source tree: expected one of 6.1.y")
    version = ".".join(part.group(1) for part in parts if part)
    if not version.startswith("6.1."):
        raise UserError(f"--source: {tree}: is Linux {version}: expected 6.1.y, which the patches are for")
    return version


def apply(patch: Path, tree: Path) -> None:
    """Applies one patch; where a hunk does not fit, the error names the file and the hunk."""
    options = ["-p1", "--forward", "--batch", "--no-backup-if-mismatch", "--reject-file=-"]
    got = subprocess.run(["patch", *options, "-i", str(patch.absolute())], cwd=tree, capture_output=True, text=True, errors="replace",
                         check=False)
    if got.returncode == 0:
        return
    file, faults = "", []
    for line in (got.stdout + got.stderr).splitlines():
        if line.startswith(("patching file ", "checking file ")):
            file = line.split(maxsplit=2)[2].strip("'")
        elif match := re.match(r"Hunk #(\d+) FAILED at (\d+)", line):
            faults.append(f"hunk {match.group(1)} of {file} (line {match.group(2)})")
        elif match := re.match(r"\|(?:---|\+\+\+) [ab]/(\S+)", line):
            file = match.group(1)
        elif "ignored" in line and not faults:
            faults.append(f"all hunks of {file}")
    what = ", ".join(faults) or (got.stdout + got.stderr).strip().splitlines()[-1]
    raise UserError(f"{patch.name}: {what} does not apply: expected a 6.1.y tree close to the one that the patch was made for, "
                    "or an updated patch")
