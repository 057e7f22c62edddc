# SPDX-License-Identifier: BSD-3-Clause
"""Debian packages for the guest: fetched by name with apt, unpacked without being installed, kept by content.

apt checks what it fetches against the distribution's signatures. Neither root nor fresh package lists are needed: where
the system's lists do not know a package, or know a version that is gone, lists of moscope's own are fetched into the
cache. A package that was fetched once stays in use until its folder in the cache is removed, so that a machine keeps
booting the same kernel.
"""

import hashlib
import json
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from moscope import locks, paths
from moscope.aside import write_whole
from moscope.errors import UserError
from moscope.failures import expected

Say = Callable[[str], None]
APT_SECONDS = 1200


@dataclass(frozen=True)
class Package:
    """An unpacked package: `tree` holds its files as they would lie under the root."""

    name: str
    version: str
    sha256: str
    tree: Path


def cache() -> Path:
    return paths.cache_dir() / "guest"


@contextmanager
def locked(name: str) -> Iterator[None]:
    """A lock called `name`, held by one process at a time; the system drops it when its holder ends."""
    path = cache() / f"{name}.lock"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("w") as handle:
            locks.take(handle)
            yield
    except OSError as error:
        if error.filename != str(path):
            raise
        raise UserError(f"{path}: {error.strerror}: expected "
                        f"{expected(error, 'a writable cache folder')} (XDG_CACHE_HOME names the cache folder)") from error


@contextmanager
def scratch(folder: Path, lock: str) -> Iterator[Path]:
    """A folder below `folder` to make something in; it is gone afterwards. The caller holds the lock of this name: what a process was
    killed over that held it before is removed first."""
    folder.mkdir(parents=True, exist_ok=True)
    if locks.held(cache() / f"{lock}.lock"):  # without locks it may be another's that works on it
        for left in folder.glob(f".{lock}_*"):  # no lock's name has a "_"
            shutil.rmtree(left, ignore_errors=True)
    with tempfile.TemporaryDirectory(dir=folder, prefix=f".{lock}_") as made:
        yield Path(made)


def digest_of(file: Path) -> str:
    with file.open("rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()


def fetch(name: str, say: Say, instead: str, leads_to: str = "") -> Package:
    """The package `name`, from the cache or by apt.

    With `leads_to`, the package `name` only depends on the wanted one, whose name begins with `leads_to`.
    `instead` is an alternative for the user if this system cannot provide the package; it ends the error's text.
    """
    with locked(f"package-{name}"):
        chosen = _chosen(name)
        package = _remembered(chosen)
        if package is None:
            package = _download(name, leads_to, say, instead)
            _remember(chosen, package)
    return package


def is_kept(name: str) -> bool:
    """Whether `fetch` takes the package from the cache."""
    return _remembered(_chosen(name)) is not None


def _chosen(name: str) -> Path:
    return cache() / "chosen" / f"{name}.json"


def depends(names: list[str], say: Say) -> str:
    """What `apt-cache depends --recurse` says of packages."""
    if shutil.which("apt-cache") is None:
        raise UserError(f"{', '.join(names)}: this system has no apt-cache to find dependencies with: expected a system with apt, or no "
                        "Debian packages")
    refusal = ""
    for options in _package_lists(say):
        if isinstance(options, str):
            refusal = options
            break
        kinds = ("recommends", "suggests", "conflicts", "breaks", "replaces", "enhances")
        got = _apt(["apt-cache", *options, "depends", "--recurse", *(f"--no-{kind}" for kind in kinds), *names])
        if got.returncode == 0:
            return got.stdout
        refusal = _last_line(got)
    raise UserError(f"{', '.join(names)}: the dependencies cannot be determined ({refusal}): expected names of Debian packages, "
                    "and network access to the distribution's archive")


def _remembered(chosen: Path) -> Package | None:
    try:
        entry = json.loads(chosen.read_text(encoding="utf-8"))
        package = Package(entry["name"], entry["version"], entry["sha256"], _tree(entry["sha256"]))
    except (FileNotFoundError, ValueError, KeyError):
        return None
    return package if package.tree.is_dir() else None


def _remember(chosen: Path, package: Package) -> None:
    chosen.parent.mkdir(parents=True, exist_ok=True)
    write_whole(chosen, json.dumps({"name": package.name, "version": package.version, "sha256": package.sha256}))


def _tree(sha256: str) -> Path:
    return cache() / "packages" / sha256


def _download(name: str, leads_to: str, say: Say, instead: str) -> Package:
    if shutil.which("apt-get") is None or shutil.which("dpkg-deb") is None:
        raise UserError(f"{name}: this system has no apt-get to fetch the package with: expected {instead}")
    say(f"fetching the package {name} (once)")
    refusal = ""
    for options in _package_lists(say):
        if isinstance(options, str):
            refusal = options
            break
        wanted, problem = _candidate(name, leads_to, options)
        if wanted is None:
            refusal = problem
            continue
        got = _download_one(name, wanted, options)
        if isinstance(got, Package):
            return got
        refusal = got
    raise UserError(f"{name}: the package cannot be fetched ({refusal}): expected network access to the distribution's archive, "
                    f"or else {instead}")


def _package_lists(say: Say) -> Iterator[list[str] | str]:
    """apt options to try in turn: for the system's package lists, then for moscope's own lists, which are fetched only in this
    case. A text explains why the own lists are not available."""
    yield _system_lists()
    say("apt cannot fetch the package with the system's package lists; fetching package lists into the cache")
    yield _own_lists()


def _system_lists() -> list[str]:
    # As root, apt otherwise warns that its sandbox user cannot write into the folder.
    return ["-o", "APT::Sandbox::User=root"] if os.geteuid() == 0 else []


def _own_lists() -> list[str] | str:
    """Fetches package lists into the cache and returns the apt options that use them; a text if that fails."""
    base = cache() / "apt"
    for folder in ("lists/partial", "archives/partial"):
        (base / folder).mkdir(parents=True, exist_ok=True)
    options = [*_system_lists(), "-o", f"Dir::State::Lists={base / 'lists'}", "-o", f"Dir::Cache={base}",
               "-o", "Debug::NoLocking=1", "-o", "APT::Update::Error-Mode=any"]
    with locked("apt-lists"):  # apt's own locks are off, and simultaneous updates would remove each other's files
        got = _apt(["apt-get", *options, "-q", "update"])
    # The lists of an archive that the user has added may fail to load; it is enough if there are any lists afterwards.
    return options if any(p.name.endswith(("_Packages", "_Packages.lz4")) for p in (base / "lists").iterdir()) \
        else _last_line(got)


def _candidate(name: str, leads_to: str, options: list[str]) -> tuple[str | None, str]:
    """The package to download; if there is none, None and the reason."""
    got = _apt(["apt-cache", *options, "show", "--no-all-versions", name])
    if got.returncode != 0 or f"Package: {name}" not in got.stdout:
        return None, f"apt knows no package {name}"
    if not leads_to:
        return name, ""
    match = re.search(rf"^Depends:.*?\b({re.escape(leads_to)}[a-z0-9.+-]+)", got.stdout, re.MULTILINE)
    return (match.group(1), "") if match else (None, f"{name} depends on nothing called {leads_to}...")


def _download_one(asked: str, name: str, options: list[str]) -> Package | str:
    """The package `name`, or why it cannot be had; `asked`: the name of which the lock is held."""
    with scratch(cache() / "packages", f"package-{asked}") as place:
        got = _apt(["apt-get", *options, "-q", "download", name], cwd=str(place))
        files = list(place.glob("*.deb"))
        if got.returncode != 0 or len(files) != 1:
            return _last_line(got)
        sha256 = digest_of(files[0])
        version = _apt(["dpkg-deb", "-f", str(files[0]), "Version"]).stdout.strip()
        unpacked = place / "tree"
        extracted = _apt(["dpkg-deb", "-x", str(files[0]), str(unpacked)])
        if extracted.returncode != 0:
            return _last_line(extracted)
        tree = _tree(sha256)
        if not tree.is_dir():
            unpacked.rename(tree)
        return Package(name, version, sha256, tree)


def _apt(command: list[str], cwd: str | None = None) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "LC_ALL": "C", "DEBIAN_FRONTEND": "noninteractive"}
    try:
        return subprocess.run(command, capture_output=True, text=True, errors="replace", cwd=cwd, env=env, check=False,
                              stdin=subprocess.DEVNULL, timeout=APT_SECONDS)
    except subprocess.TimeoutExpired:
        return subprocess.CompletedProcess(command, 1, "", f"{command[0]} took more than {APT_SECONDS} s")


def _last_line(got: subprocess.CompletedProcess[str]) -> str:
    lines = [line for line in (got.stderr + "\n" + got.stdout).splitlines() if line.strip()]
    errors = [line for line in lines if line.startswith("E:")] or lines or [f"exit code {got.returncode}"]
    return errors[0].removeprefix("E: ")
