# SPDX-License-Identifier: BSD-3-Clause
"""Builds the project's kernel outside the checkout and keeps it by content: source, configuration, patches, compiler.

A finished build is renamed into its place as a whole. The work folder is always the same one, so that a compiler cache
finds its objects. The next build removes the rest of an interrupted one.
"""

import hashlib
import json
import os
import re
import shutil
import subprocess
import time
from collections import deque
from dataclasses import dataclass
from pathlib import Path

from moscope.errors import UserError
from moscope.guest import kernel_config, kernel_patches, kernel_source, packages
from moscope.guest.kernel_source import Source
from moscope.guest.packages import Say
from moscope.naming.image import beside

# Program that the build calls, and the Debian package that holds it.
PROGRAMS = {"gcc": "gcc", "make": "make", "flex": "flex", "bison": "bison", "bc": "bc", "pahole": "dwarves", "patch": "patch",
            "tar": "tar", "xz": "xz-utils", "perl": "perl"}
HEADERS = {"libelf.h": "libelf-dev"}
# Equal inputs give equal images, because nothing depends on the time or the machine.
FIXED = {"KBUILD_BUILD_TIMESTAMP": "Sun Oct  3 00:00:00 UTC 2010", "KBUILD_BUILD_USER": "moscope", "KBUILD_BUILD_HOST": "moscope",
         "KBUILD_BUILD_VERSION": "1", "LC_ALL": "C"}
# Of the debug information, only types and lines are used. The places of variables would take a fifth of the compiler's time
# and make up half of its output. Without them, the code is the same.
COMPILER_FLAGS = "-fno-var-tracking -gno-statement-frontiers -gno-inline-points"
UNREAD = (".debug_frame", ".debug_loc", ".debug_loclists", ".symtab")  # sections of debug information that names do not need
REPORT_SECONDS = 15
KEY_DIGITS = 32  # hexadecimal, of the name of a build in the cache


@dataclass(frozen=True)
class Built:
    """A kernel in the cache. `image` is the bzImage; its folder also holds types, debug information, System.map, config and
    build.json."""

    key: str
    folder: Path
    document: dict[str, str]

    @property
    def image(self) -> Path:
        return self.folder / "vmlinuz"


def lacking() -> list[str]:
    """Debian packages that a build needs and this system lacks."""
    missing = [package for program, package in PROGRAMS.items() if shutil.which(program) is None]
    if shutil.which("gcc"):
        probe = "".join(f"#if !__has_include(<{h}>)\nmissing {p}\n#endif\n" for h, p in HEADERS.items())
        got = subprocess.run(["gcc", "-E", "-P", "-"], input=probe, text=True, capture_output=True, check=False)
        missing += [line.split()[1] for line in got.stdout.splitlines() if line.startswith("missing ")]
    return missing


def inputs(source: Source, variant: str = "") -> dict[str, str]:
    """The inputs that determine the content of a build, by name."""
    tools = [_first_line([program, "--version"]) for program in ("gcc", "ld", "pahole") if shutil.which(program)]
    other = {f"variant {variant}": kernel_config.options(variant)} if variant else {}
    return {"source": source.identity, "config": packages.digest_of(kernel_config.common()), "tools": "; ".join(tools),
            "flags": COMPILER_FLAGS, "kept": "types, debug information",
            **{f"patch {p.name}": kernel_patches.read(p).digest for p in kernel_patches.series_of(variant)}, **other}


def key_of(source: Source, variant: str = "") -> str:
    return hashlib.sha256(json.dumps([inputs(source, variant), FIXED], sort_keys=True).encode()).hexdigest()[:KEY_DIGITS]


def kept(key: str) -> Built | None:
    """The build of this key, if the cache has it."""
    folder = _kernels() / key
    try:
        return Built(key, folder, json.loads((folder / "build.json").read_text(encoding="utf-8")))
    except (FileNotFoundError, ValueError):
        return None


def is_kept(variant: str) -> bool:
    """Whether `build` finds Debian's source and its build in the cache."""
    return packages.is_kept(kernel_source.PACKAGE) and kept(key_of(kernel_source.debian(lambda _: None), variant)) is not None


def all_kept() -> list[Built]:
    return [built for folder in sorted(_kernels().glob("[0-9a-f]" * KEY_DIGITS)) if (built := kept(folder.name))]


def build(say: Say, tree: Path | None = None, jobs: int | None = None, variant: str = "") -> Built:
    """The project's kernel or a variant of it, from the cache or built now."""
    kernel_config.check(variant)
    source = kernel_source.own(tree) if tree else kernel_source.debian(say)
    if found := kept(key_of(source, variant)):
        return found
    _install(say)
    with packages.locked("kernel-build"):
        key = key_of(source, variant)  # computed after the packages are installed, because the versions of tools are part of it
        return kept(key) or _build(key, source, variant, jobs or os.cpu_count() or 1, say)


def configured(say: Say, tree: Path | None = None, variant: str = "") -> str:
    """The full configuration that a build would use."""
    kernel_config.check(variant)
    source = kernel_source.own(tree) if tree else kernel_source.debian(say)
    if found := kept(key_of(source, variant)):
        return (found.folder / "config").read_text(encoding="utf-8")
    _install(say)
    with packages.locked("kernel-build"):
        work = _fresh()
        try:
            return _configure(source, variant, work, say)
        finally:
            shutil.rmtree(work, ignore_errors=True)


def _kernels() -> Path:
    return packages.cache() / "kernels"


def _install(say: Say) -> None:
    from moscope import bootstrap

    if names := lacking():
        say(f"the kernel's build needs {', '.join(names)}")
        bootstrap.install_packages(bootstrap.Voice(False), lacking)


def _fresh() -> Path:
    """The empty work folder. The rest of an interrupted build is first renamed, because its programs may still be running and
    writing there."""
    work = _kernels() / ".work"
    if work.exists():
        work.rename(work.with_name(f".work-{os.getpid()}-{time.time_ns()}"))
    for left in _kernels().glob(".work-*"):
        shutil.rmtree(left, ignore_errors=True)
    work.mkdir(parents=True)
    (_kernels() / "build.log").unlink(missing_ok=True)
    return work


def _build(key: str, source: Source, variant: str, jobs: int, say: Say) -> Built:
    started = time.monotonic()
    say(f"building the {f'{variant} variant of the ' if variant else ''}kernel from {source.version} (once; some minutes)")
    work = _fresh()
    try:
        config = _configure(source, variant, work, say)
        compiler = "ccache gcc" if shutil.which("ccache") else "gcc"
        _make(work, [f"-j{jobs}", f"CC={compiler}", f"HOSTCC={compiler}", f"KCFLAGS={COMPILER_FLAGS}", "bzImage"], say)
        ready = work / ".ready"
        ready.mkdir()
        shutil.copyfile(work / "arch/x86/boot/bzImage", ready / "vmlinuz")
        shutil.copyfile(work / "System.map", ready / "System.map")
        if "\nCONFIG_DEBUG_INFO=y\n" in config:
            _types(work / "vmlinux", work / ".types")
            shutil.copyfile(work / ".types", beside(ready / "vmlinuz"))
            _debug(work / "vmlinux", beside(ready / "vmlinuz", "debug"))
        (ready / "config").write_text(config, encoding="utf-8")
        document = {"source": source.version, "sha256": packages.digest_of(ready / "vmlinuz"), "inputs": inputs(source, variant),
                    "seconds": f"{time.monotonic() - started:.0f}", "jobs": str(jobs), **({"variant": variant} if variant else {})}
        (ready / "build.json").write_text(json.dumps(document, indent=1, sort_keys=True) + "\n", encoding="utf-8")
        place = _kernels() / key
        shutil.rmtree(place, ignore_errors=True)
        ready.rename(place)
    finally:
        shutil.rmtree(work, ignore_errors=True)
    built = kept(key)
    assert built
    say(f"built in {time.monotonic() - started:.0f} s")
    return built


def _configure(source: Source, variant: str, work: Path, say: Say) -> str:
    """Unpacks, patches and configures in `work`; an option that the tree does not take as written is an error."""
    source.unpack(work, say)
    for patch in kernel_patches.series_of(variant):
        kernel_source.apply(patch, work)
    if source.place.is_dir():
        _make(work, ["-s", "mrproper"], say)
    wanted = kernel_config.fragment(variant)
    laid = work / ".fragment"
    laid.write_text(wanted, encoding="utf-8")
    _make(work, ["-s", f"KCONFIG_ALLCONFIG={laid}", "allnoconfig"], say)
    config = (work / ".config").read_text(encoding="utf-8")
    if wrong := kernel_config.disregarded(wanted, config):
        raise UserError(f"{kernel_config.file_of(variant)}: this kernel does not accept {', '.join(wrong)}: expected options of this "
                        "kernel, with all their dependencies")
    return config


def _make(work: Path, arguments: list[str], say: Say) -> None:
    """Runs make at a lower priority and reports progress periodically. If it fails, its errors are shown: make goes on with other
    files for a while, so they need not be at the end of its output."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("KBUILD", "KC", "KAFLAGS", "MAKE", "ARCH", "CROSS_"))} | FIXED
    last: deque[str] = deque(maxlen=15)
    log = _kernels() / "build.log"
    errors: list[str] = []
    files, said = 0, time.monotonic()
    command = ["nice", "-n", "19", "make", *arguments]
    with log.open("a", encoding="utf-8") as whole, subprocess.Popen(command, cwd=work, env=environment, stdin=subprocess.DEVNULL, text=True,
                                                                    errors="replace", stdout=subprocess.PIPE,
                                                                    stderr=subprocess.STDOUT) as running:
        try:
            assert running.stdout
            for line in running.stdout:
                whole.write(line)
                last.append(line.rstrip())
                if re.search(r"(?i)\berror:|: undefined reference", line):
                    errors.append(line.rstrip())
                if re.match(r"  (CC|AS|HOSTCC) ", line):
                    files += 1
                if time.monotonic() - said > REPORT_SECONDS:
                    said = time.monotonic()
                    say(f"  {files} files compiled, at {line.split()[-1] if line.split() else ''}")
        except BaseException:
            running.terminate()
            raise
    if running.returncode:
        shown = [f"errors: {len(errors)}, the first of them", *errors[:8]] if errors else ["the last lines were", *last]
        raise UserError(f"{log}: the kernel does not build: expected a compiler that builds 6.1, and patches that apply to it; "
                        + "\n".join(shown))


def _types(vmlinux: Path, file: Path) -> None:
    """The BTF of an image with debug information."""
    got = subprocess.run(["nice", "-n", "19", "pahole", "--btf_gen_floats", f"--btf_encode_detached={file}", str(vmlinux)],
                         capture_output=True, text=True, check=False)
    if got.returncode or not file.is_file():
        raise UserError("pahole finds no types in the new kernel: expected dwarves 1.22 or later; it says "
                        f"{got.stderr.strip()[-400:]!r}")


def _debug(vmlinux: Path, file: Path) -> None:
    """The debug information of an image: lines, functions and types, compressed."""
    command = ["nice", "-n", "19", "objcopy", "--only-keep-debug", "--compress-debug-sections", *(f"--remove-section={n}" for n in UNREAD)]
    got = subprocess.run([*command, str(vmlinux), str(file)], capture_output=True, text=True, check=False)
    if got.returncode:
        raise UserError(f"objcopy cannot split the debug information off the new kernel: expected binutils; it says "
                        f"{got.stderr.strip()[-400:]!r}")


def _first_line(command: list[str]) -> str:
    got = subprocess.run(command, capture_output=True, text=True, check=False)
    return got.stdout.splitlines()[0] if got.stdout else ""
