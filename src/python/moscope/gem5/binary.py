# SPDX-License-Identifier: BSD-3-Clause
"""The gem5 that the user brings. It is found by `--gem5` or the environment variable GEM5, and asked for its properties before it
runs anything. When it dies, its last output is reported."""

import json
import os
import re
import subprocess
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from moscope import paths
from moscope.errors import MoscopeError, ProtocolError, UserError

VARIABLE = "GEM5"
VERSION = "24."
ASK_SECONDS = 120
LAST_LINES = 12
# gem5's messages when the protocol is at fault, not the simulator.
PROTOCOL_FAULTS = re.compile(r"Invalid transition|Possible Deadlock|Deadlock detected|Action/check failure|Ruby functional")
# Messages of our scripts to the launcher (configs/gem5/machine_system.py).
OWN_WORDS = re.compile(r"^moscope-gem5: (.*)$", re.MULTILINE)
# Those of our messages that report no error.
NEWS = ("ended: ", "region: ", "progress: ", "is: ")


class Gem5Died(MoscopeError):
    """gem5 ended before its script did."""

    kind = "gem5 died"


@dataclass(frozen=True)
class Gem5:
    """A gem5 binary and the properties that it reports of its build."""

    path: Path
    version: str
    protocol: str
    runs_x86: bool


def find(given: Path | None) -> Path:
    """The binary named on the command line, else by the environment."""
    name, where = (given, "--gem5") if given else (os.environ.get(VARIABLE), VARIABLE)
    if not name:
        raise UserError("gem5: no binary is given: expected --gem5 PATH, or the environment variable GEM5, with a gem5 built as "
                        "docs/gem5.md says")
    path = Path(name).expanduser()
    if not path.is_file() or not os.access(path, os.X_OK):
        raise UserError(f"{where}: {path} is not a program: expected a gem5 binary, such as build/X86_MOESI_HTAssist/gem5.opt")
    return path.resolve()


def ask(path: Path) -> Gem5:
    """The properties of a binary, which a script in it reports (configs/gem5/tell.py)."""
    with tempfile.TemporaryDirectory(prefix="moscope-gem5-") as folder:
        command = [str(path), f"--outdir={folder}", str(paths.root() / "configs/gem5/tell.py")]
        try:
            got = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=ASK_SECONDS,
                                 stdin=subprocess.DEVNULL, cwd=folder, check=False)
        except (OSError, subprocess.TimeoutExpired) as error:
            raise UserError(f"{path}: does not run a script: {type(error).__name__}: expected a gem5 binary of "
                            f"version {VERSION}x") from error
    answer = re.search(r"^moscope-gem5: is: (.*)$", got.stdout, re.MULTILINE)
    if got.returncode != 0 or answer is None:
        raise UserError(f"{path}: is not gem5, or does not run (it ended {ending(got.returncode)}): expected a gem5 binary of "
                        f"version {VERSION}x\n"
                        f"{last_lines(got.stdout + got.stderr)}".rstrip())
    try:
        is_ = json.loads(answer[1])
        return Gem5(path, str(is_["version"]), str(is_["protocol"]), bool(is_["x86"]))
    except (ValueError, KeyError, TypeError) as error:
        raise UserError(f"{path}: does not report its version, protocol and x86: expected a gem5 binary of version {VERSION}x\n"
                        f"{last_lines(got.stdout)}") from error


def require(path: Path, protocol: str, x86: bool = False) -> Gem5:
    """The binary, or a UserError that names what it lacks."""
    gem5 = ask(path)
    if not gem5.version.startswith(VERSION):
        raise UserError(f"{path}: is gem5 {gem5.version}: expected version {VERSION}x, whose interfaces configs/gem5 is written for")
    if gem5.protocol != protocol:
        raise UserError(f"{path}: was built with the protocol {gem5.protocol}: expected one built with {protocol}; docs/gem5.md says how, "
                        "and each build needs EXTRAS again")
    if x86 and not gem5.runs_x86:
        raise UserError(f"{path}: was built without x86: expected one built with USE_X86_ISA=y, to run programs")
    return gem5


def ending(code: int) -> str:
    """How a process ended."""
    return f"by signal {-code}" if code < 0 else f"with exit code {code}"


def last_lines(text: str) -> str:
    """The last lines of gem5's output before its own backtrace."""
    answer = text.partition("--- BEGIN LIBC BACKTRACE")[0].rstrip().splitlines()
    return "\n".join(f"  {line}" for line in answer[-LAST_LINES:])


@dataclass(frozen=True)
class Ran:
    """One run: gem5's output folder, what it printed, and how long the host took."""

    folder: Path
    log: str
    seconds: float

    def ending(self) -> tuple[str, float]:
        """Why the simulation ended, and the host seconds of the simulation itself."""
        found = re.search(r"^moscope-gem5: ended: (.*): ([0-9.]+) s$", self.log, re.MULTILINE)
        if found is None:
            raise Gem5Died(f"it did not reach the end of its script; last lines:\n{last_lines(self.log)}")
        return found[1], float(found[2])

    def reported(self, what: str) -> float:
        """A number that the script reports for the window: "operations", "processor" (seconds)."""
        found = re.search(rf"^moscope-gem5: region: {what}: ([0-9.]+)", self.log, re.MULTILINE)
        if found is None:
            raise Gem5Died(f"it did not report the window's {what}; last lines:\n{last_lines(self.log)}")
        return float(found[1])

    def says(self, news: str) -> bool:
        """Whether the script has reported `news`, so that it has reached this point."""
        return f"moscope-gem5: {news}" in self.log


def run(gem5: Gem5, script: str, arguments: list[str], folder: Path, options: list[str] | None = None) -> Ran:
    """Runs a script of configs/gem5; an error contains the last message of the script or of gem5."""
    folder.mkdir(parents=True, exist_ok=True)
    log = folder / "gem5.log"
    command = [str(gem5.path), f"--outdir={folder}", *(options or []), str(paths.root() / "configs/gem5" / script), *arguments]
    began = time.monotonic()
    with log.open("w", encoding="utf-8") as out:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT)
        try:
            code = process.wait()
        except BaseException:
            process.kill()
            process.wait()
            raise
    text = log.read_text(encoding="utf-8", errors="replace")
    if code != 0:
        raise failure(gem5, text, code)
    return Ran(folder, text, time.monotonic() - began)


def failure(gem5: Gem5, text: str, code: int) -> MoscopeError:
    """The error that explains a failed run: of the user's gem5 or machine, of the protocol, or of gem5 itself."""
    own = [words for words in OWN_WORDS.findall(text) if not words.startswith(NEWS)]
    if own:
        return UserError(f"{gem5.path}: {own[-1]}")
    message = f"{gem5.path.name} ended {ending(code)}; its last lines:\n{last_lines(text)}"
    if PROTOCOL_FAULTS.search(text):
        return ProtocolError(message)
    return Gem5Died(message)
