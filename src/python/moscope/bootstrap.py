# SPDX-License-Identifier: BSD-3-Clause
"""The launcher's work: distribution packages, virtual environment, build, then the front end in that environment.

Standard library only, because it runs before anything is installed. It finds out what is done already from file
times and sizes, never by running a tool, so that a start with nothing to do costs little. All its messages go to
stderr. It can be interrupted at any point: a step counts as done only when its mark is written, which comes last.
"""

import hashlib
import os
import platform
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NoReturn

from moscope import groups, interruptions, locks, paths, streams, toolchain
from moscope._version import VERSION
from moscope.aside import write_whole
from moscope.errors import INTERRUPTED, BuildFailed, MoscopeError, UserError, unknown_name
from moscope.failures import expected

# Folders and files whose changes require a build (`moscope test` builds the tests).
BUILD_INPUTS = ("SConstruct", "requirements.txt", "src", "src/python/moscope/toolchain.py",
                "src/python/moscope/buildproto.py")
BUILD_SUFFIXES = {".cc", ".hh", ".slicc", ".sm", ".py", ".lark", ".toml", ".txt", ""}
GRACE_S = 10  # for an interrupted build or installation to end by itself
COMPLETE = "_MOSCOPE_COMPLETE"  # in the environment: a shell completes a command line (moscope/completion.py)


class Voice:
    """Progress on stderr: one changing line on a terminal, plain lines elsewhere, nothing when quiet."""

    def __init__(self, quiet: bool) -> None:
        self.quiet = quiet
        self.live = sys.stderr.isatty()

    def say(self, text: str) -> None:
        if not self.quiet:
            print(f"moscope: {text}", file=sys.stderr, flush=True)

    def step(self, text: str) -> None:
        if self.quiet:
            return
        if self.live:
            width = shutil.get_terminal_size().columns - 1
            print("\r\033[K" + text[:width], end="", file=sys.stderr, flush=True)
        else:
            print(text, file=sys.stderr, flush=True)

    def clear(self) -> None:
        if self.live and not self.quiet:
            print("\r\033[K", end="", file=sys.stderr, flush=True)


class Relay(Voice):
    """Passes every line to a command's own `report`, which knows whether the user wants to see it."""

    def __init__(self, report: Callable[[str], None]) -> None:
        super().__init__(quiet=False)
        self.live = False
        self.report = report

    def say(self, text: str) -> None:
        self.report(text)

    def step(self, text: str) -> None:
        self.report(text)


def run_logged(command: list[str], log: Path, voice: Voice, env: dict[str, str] | None = None, *, own_group: bool = True) -> int:
    """Runs a command, its output into `log` and, as progress, line by line to the user; returns its exit code. An interruption ends
    the command with all that it has started; without `own_group`, only the command, which the terminal then belongs to as well."""
    log.parent.mkdir(parents=True, exist_ok=True)
    started, done, total = time.monotonic(), 0, 0
    with log.open("w", encoding="utf-8", errors="replace") as out:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, cwd=paths.root(),
                                   stderr=subprocess.STDOUT, text=True, errors="replace", env=env, start_new_session=own_group)
        assert process.stdout is not None
        try:
            for line in process.stdout:
                out.write(line)
                text = line.rstrip()
                if text.startswith("steps "):  # SConstruct's number of steps for a complete build
                    total = int(text.split()[1])
                elif text.startswith("waiting: "):  # SConstruct's, for the lock of the build folder
                    voice.say(text)
                elif re.match(r"  (compile|link|generate) ", text):
                    done += 1
                    count = f"{done} of at most {total}" if total else f"{done}"
                    voice.step(f"  [{count}, {time.monotonic() - started:.0f} s] {text.strip()}")
                elif text and voice.live:
                    voice.step(f"  [{time.monotonic() - started:.0f} s] {text}")
            return process.wait()
        except BaseException:
            if own_group:
                groups.end(process, signal.SIGTERM, GRACE_S)  # a job in the background, or below nohup, ignores SIGINT
            else:
                with suppress(PermissionError):  # of sudo, which has the terminal's signals itself
                    process.send_signal(signal.SIGINT)
                process.wait()
            raise
        finally:
            voice.clear()


def tail(log: Path, lines: int = 40) -> str:
    return "\n".join(log.read_text(encoding="utf-8", errors="replace").splitlines()[-lines:])


# --- distribution packages -------------------------------------------------------------------------------------


def install_packages(voice: Voice, lacking: Callable[[], list[str]] | None = None) -> None:
    """Installs the packages that `lacking` names (by default, those that the build lacks), as root or with sudo; otherwise tells
    the user what an administrator has to run."""
    lacking = lacking or toolchain.missing_packages
    if lacking():
        with locked(paths.cache_dir() / "apt.lock", voice, "installing distribution packages"):
            _install(sorted(set(lacking())), lacking, voice)


def _install(missing: list[str], lacking: Callable[[], list[str]], voice: Voice) -> None:
    if not missing:
        return
    own_python = os.path.realpath(sys.executable).startswith("/usr/bin/")
    if not own_python and set(missing) & {"python3-dev", "python3-venv"}:
        raise UserError(f"{sys.executable}: this Python has no headers or no ensurepip module: expected the "
                        "distribution's python3 first on PATH, or this Python's development files")
    if "g++" in missing and "CXX" in os.environ:
        raise UserError(f"CXX: {toolchain.CXX}: no such program: expected the name or path of a C++ compiler, without options")
    names = " ".join(missing)
    install = f"apt-get update && apt-get install -y --no-install-recommends {names}"
    if shutil.which("apt-get") is None:
        raise UserError(f"this system: lacks packages: expected the packages that Debian 12 calls {names}")
    prefix: list[str] | None = None
    if os.geteuid() == 0:
        prefix = []
    elif shutil.which("sudo") and (sys.stdin.isatty() or subprocess.run(
            ["sudo", "-n", "true"], capture_output=True, check=False).returncode == 0):
        prefix = ["sudo"]
    if prefix is None:
        raise UserError(f"this system: lacks {names}: expected an administrator to run, as root,\n\n  {install}\n")
    voice.say(f"installing distribution packages: {names}")
    log = paths.cache_dir() / "apt.log"
    # `apt-get update` does not wait for the lock of the lists, which the distribution's own update may hold, so it is repeated.
    shell = ("export DEBIAN_FRONTEND=noninteractive; for n in 1 2 3; do apt-get update && break; sleep 10; done; "
             f"apt-get -o DPkg::Lock::Timeout=600 install -y --no-install-recommends {names}")
    # sudo reads a password from the terminal, and dpkg must not be killed half-way.
    if run_logged([*prefix, "sh", "-c", shell], log, voice, own_group=False) != 0 or lacking():
        raise UserError(f"{log}: the packages {names} could not be installed:\n{tail(log, 15)}")


# --- virtual environment ---------------------------------------------------------------------------------------


def requirements(purpose: str = "") -> Path:
    """The packages of moscope's own environment, or of one for a purpose such as `docs`."""
    return paths.root() / (f"requirements-{purpose}.txt" if purpose else "requirements.txt")


def venv_dir(purpose: str = "") -> Path:
    """Keyed by what goes in and by the interpreter's place and binary interface, so checkouts share it.

    A security update of the interpreter in place keeps the environment: it only points there.
    """
    key = hashlib.sha256()
    key.update(requirements(purpose).read_bytes())
    key.update(f"{os.path.realpath(sys.executable)} {sys.implementation.cache_tag} {platform.machine()}".encode())
    return paths.cache_dir() / f"venv-{purpose + '-' if purpose else ''}{key.hexdigest()[:16]}"


def python_of(venv: Path) -> str:
    return str(venv / "bin" / "python")


def venv_ready(venv: Path) -> bool:
    return (venv / "complete").exists()


@contextmanager
def locked(path: Path, voice: Voice, what: str) -> Iterator[None]:
    """Holds a file lock; the system drops it when the holder ends, however it ends."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as handle:
        if not locks.take(handle, wait=False):
            voice.say(f"waiting: another moscope is {what}")
            locks.take(handle)
        yield


def extra_venv(purpose: str, voice: Voice) -> Path:
    """The environment of requirements-PURPOSE.txt, for the commands that need it; an ordinary start does not create it."""
    venv = venv_dir(purpose)
    if not venv_ready(venv):
        make_venv(venv, voice, purpose)
    return venv


def make_venv(venv: Path, voice: Voice, purpose: str = "") -> None:
    with locked(venv.with_suffix(".lock"), voice, "setting up the Python packages"):
        if venv_ready(venv):
            return
        voice.say(f"setting up Python packages in {venv} (once per version of {requirements(purpose).name})")
        log = venv.with_suffix(".log")
        python = python_of(venv)
        steps = [
            [sys.executable, "-m", "venv", "--clear", str(venv)],
            # PEP 517: pip builds source packages in an environment with `wheel`, which the new environment lacks.
            [python, "-m", "pip", "install", "--disable-pip-version-check", "--no-input", "--progress-bar", "off", "--use-pep517",
             "-r", str(requirements(purpose))],
        ]
        for command in steps:
            if run_logged(command, log, voice) != 0:
                raise UserError(f"{log}: the Python packages could not be installed:\n{tail(log, 15)}")
        (venv / "complete").touch()


# --- build -----------------------------------------------------------------------------------------------------


TARGETS = ("engine", "module", "protocols", "checks", "unit_tests")  # of SConstruct; without any, the first three


def build_digest() -> str:
    """Changes whenever the build has to: a line each for the Python and the compiler that it is for, and one for all files that it
    reads (names, sizes and times only). The environment's own folder is in no object; requirements.txt has its packages' versions."""
    digest = hashlib.sha256()
    root = str(paths.root())
    python_side = os.path.join(root, "src", "python", "moscope")
    stack = [os.path.join(root, name) for name in BUILD_INPUTS]
    while stack:
        path = stack.pop()
        if os.path.isdir(path):
            if path == python_side or os.path.basename(path) == "__pycache__":
                continue  # Python code of the front end needs no build
            stack += [entry.path for entry in sorted(os.scandir(path), key=lambda e: e.name)]
        elif os.path.splitext(path)[1] in BUILD_SUFFIXES:
            try:
                status = os.stat(path)
            except FileNotFoundError:
                continue
            digest.update(f"{path[len(root):]} {status.st_size} {status.st_mtime_ns}\n".encode())
    python = f"{sys.implementation.cache_tag}{sys.abiflags} {platform.machine()}"  # two of one binary interface load the same module
    return f"Python {python}\ncompiler {toolchain.CXX}\nsources {digest.hexdigest()}\n"


def why_built(stamp: str, digest: str) -> str:
    """In what a build differs from the one wanted, by their digests."""
    made, wanted = (dict(line.partition(" ")[::2] for line in text.splitlines()) for text in (stamp, digest))
    for what in ("Python", "compiler"):
        if what in made and made[what] != wanted[what]:
            return f"{paths.build_dir()} is built for another {what} ({made[what]}, not {wanted[what]})"
    return "sources changed"


def scons(venv: Path, arguments: list[str], voice: Voice) -> None:
    """Runs SCons; it takes the build folder's lock itself (see SConstruct)."""
    log = paths.build_dir() / "build.log"
    own_log = log.with_name(f"build.{threading.get_native_id()}.log")  # another start or thread may be building, too
    jobs = len(os.sched_getaffinity(0))
    command = [python_of(venv), "-m", "SCons", "-Q", f"-j{jobs}", f"variant={paths.variant()}", *arguments]
    try:
        code = run_logged(command, own_log, voice, clean_environment())
    finally:
        with suppress(FileNotFoundError):  # in a folder that cannot be written, which is the error to report
            own_log.replace(log)
    if code != 0:
        said = tail(log)
        if unknown := re.search(r"\*\*\* Do not know how to make File target `([^']*)'", said):
            raise UserError(f"moscope build: {unknown[1]}: no such target: expected a file that the build makes, or targets: "
                            f"{', '.join(TARGETS)}")
        raise BuildFailed(f"{log}:\n{said}")


def ensure_built(venv: Path, voice: Voice) -> None:
    digest = build_digest()
    try:
        stamp = (paths.build_dir() / "built").read_text()
    except FileNotFoundError:
        begun = (paths.build_dir() / ".sconsign.dblite").exists()  # SCons writes it when it ends, also if interrupted
        voice.say(f"building in {paths.build_dir()} ({'the last build is not complete' if begun else 'the first time takes minutes'})")
    else:
        if stamp == digest:
            return
        voice.say(f"{why_built(stamp, digest)}, building")
    build(venv, [], voice)


def build_targets(arguments: list[str]) -> list[str]:
    """What `moscope build` is asked for: files and TARGETS. UserError: something else."""
    for word in arguments:
        if word in ("-h", "--help"):
            print(f"moscope build [--quiet] [TARGET..]: builds files, or the targets {', '.join(TARGETS)} (default: the first three). "
                  "-c removes their files, -k continues after an error, -n prints the steps without running them, -jN uses N processors.")
            sys.exit(0)
        if word.startswith("--") and word != "--quiet":
            raise UserError(f"moscope build: no option called {word}: expected --quiet, or targets: {', '.join(TARGETS)}")
        if word.startswith("-") and not word.startswith("--") and not re.fullmatch(r"-[ckn]|-j\d+", word):
            raise UserError(f"moscope build: no option called {word}: expected -c, -k, -n or -jN")
        if not word.startswith("-") and "/" not in word and word not in TARGETS:
            raise unknown_name("moscope build", "target", word, TARGETS)
    return [word for word in arguments if word != "--quiet"]


def build(venv: Path, targets: list[str], voice: Voice) -> None:
    """Builds targets of SCons, or what a start needs. A build that stops half-way leaves no stamp. With one, sources restored
    with their old times would look built."""
    stamp = paths.build_dir() / "built"
    digest = build_digest()  # taken before the build, so that an edit made meanwhile builds again
    if not stamp.exists() or stamp.read_text() != digest:
        stamp.unlink(missing_ok=True)
    install_packages(voice)
    scons(venv, targets, voice)
    if not targets:
        write_whole(stamp, digest)


def ensure_checks(libraries: list[Path], voice: Voice) -> None:
    """Builds the checking libraries of the project's protocols on demand; ordinary starts do not build them.

    Runs in the front end, after `ensure_built`. It compares the libraries with the build that `ensure_built` made,
    not with the sources as they are now, so that an edit of the sources does not affect a running command or test.
    """
    try:
        digest = (paths.build_dir() / "built").read_text()
    except FileNotFoundError:
        digest = ""  # after a build of single targets, as by `moscope build`; SCons then checks each time
    stale = [library for library in libraries if not digest or not belongs(library, digest)]
    if not stale:
        return
    voice.say(f"building {', '.join(library.name for library in stale)} (once after each change of the sources)")
    install_packages(voice)
    scons(Path(sys.prefix), [str(library.relative_to(paths.root())) for library in stale], voice)
    if digest:  # the digest of the earlier build, so that an edit made meanwhile causes another build
        for library in stale:
            write_whole(library.with_suffix(".built"), stamp_of(library, digest))


def belongs(library: Path, digest: str) -> bool:
    try:
        return library.with_suffix(".built").read_text() == stamp_of(library, digest)
    except FileNotFoundError:
        return False


def stamp_of(library: Path, digest: str) -> str:
    """The stamp contains the file's own time, so it becomes invalid when something else, such as `moscope build checks`, rewrites
    or removes the file."""
    return f"{digest} {library.stat().st_mtime_ns}"


# --- the start -------------------------------------------------------------------------------------------------


def clean_environment() -> dict[str, str]:
    """The caller's environment, less what would lead Python to other packages than the virtual environment's.

    MPLBACKEND is such a name, too: a notebook's kernel sets it to a backend that only its own environment has.
    """
    env = {k: v for k, v in os.environ.items() if k not in ("PYTHONHOME", "PYTHONSTARTUP", "VIRTUAL_ENV", "MPLBACKEND")}
    if "libasan" in env.get("LD_PRELOAD", ""):
        del env["LD_PRELOAD"]  # set below for the front end only; compilers do not need it
    if not paths.installed():
        env["PYTHONPATH"] = str(paths.import_dir())
    return env


def front_end_environment() -> dict[str, str]:
    env = clean_environment()
    # The arrays of a machine's caches are many times what the host's address translation covers in small pages: the
    # allocator asks for huge ones (glibc 2.35, where the host gives them to who asks). What the user has set stays.
    tunables = env.get("GLIBC_TUNABLES", "")
    if "glibc.malloc.hugetlb=" not in tunables:
        env["GLIBC_TUNABLES"] = ":".join(filter(None, [tunables, "glibc.malloc.hugetlb=1"]))
    if paths.variant() == "asan":
        # The sanitizer's run-time has to come first in a process that loads the engine later; Python itself
        # keeps memory to its end on purpose.
        # With the C++ library beside it: it has to find the real throw before the first module in C++ is loaded.
        files = [subprocess.run([toolchain.CXX, f"-print-file-name={name}"], capture_output=True, text=True,
                                check=True).stdout.strip() for name in ("libasan.so", "libstdc++.so")]
        env["LD_PRELOAD"] = " ".join(files)
        env.setdefault("ASAN_OPTIONS", "detect_leaks=0")
    return env


def prepare(voice: Voice) -> Path:
    """Sets up the virtual environment and the distribution packages that it requires; returns the environment's folder."""
    if paths.variant() not in paths.VARIANTS:
        raise unknown_name("MOSCOPE_VARIANT", "variant", paths.variant(), paths.VARIANTS)
    venv = venv_dir()
    if not venv_ready(venv):
        install_packages(voice)
        make_venv(venv, voice)
    return venv


def front_end(python: str, argv: list[str]) -> NoReturn:
    sys.stderr.flush()
    environment = front_end_environment() | ({} if streams.has_stdout() else {streams.NO_STDOUT: "1"})
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})  # until cli.main can answer: a Python that starts has a traceback only
    # -P: do not import from the caller's working folder.
    os.execve(python, [python, "-P", "-m", "moscope", *argv], environment)


def complete(argv: list[str]) -> NoReturn:
    """Answers a shell's completion request at once. Before the first start has set up the environment, the answer is empty."""
    if venv_ready(venv_dir()):
        front_end(python_of(venv_dir()), argv)
    sys.exit(0)


def main(argv: list[str]) -> NoReturn:
    streams.prepare()
    voice = Voice(quiet="--quiet" in argv)  # stderr: --json has stdout to itself
    if argv == ["--version"]:  # needs no build
        print(f"moscope {VERSION}")
        sys.exit(0)
    try:
        interruptions.hear()
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})  # which the launcher has blocked
        if COMPLETE in os.environ:
            complete(argv)
        targets = build_targets(argv[1:]) if argv[:1] == ["build"] else None
        venv = prepare(voice)
        if targets is not None:
            build(venv, targets, voice)
            sys.exit(0)
        ensure_built(venv, voice)
        front_end(python_of(venv), argv)
    except MoscopeError as error:
        print(error.report(), file=sys.stderr)
        sys.exit(error.exit_code)
    except OSError as error:
        right = expected(error, "a writable folder with free space")
        print(f"moscope: {error.filename}: {error.strerror}: expected {right}", file=sys.stderr)
        sys.exit(UserError.exit_code)
    except KeyboardInterrupt:
        print("moscope: interrupted; the next start continues from here", file=sys.stderr)
        sys.exit(INTERRUPTED)
