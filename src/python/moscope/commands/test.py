# SPDX-License-Identifier: BSD-3-Clause
"""`moscope test`: builds the C++ tests and runs them with the Python ones, under pytest."""

import os
import re
import shutil
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from moscope import bootstrap, buildproto, errors, paths
from moscope.cli import MOST_JOBS, SIMULATED, Shared, command
from moscope.errors import BuildFailed, SimulatorBug, UserError

# pytest's exit code for a selection that holds no test.
NOTHING_SELECTED = 5
EXPECTED = "expected a file, a folder, part of a name, or such parts with `and`, `or`, `not` between them"
# Programs that only tests call, and the Debian packages that hold them.
PROGRAMS = {"clang-format": "clang-format", "clang-tidy": "clang-tidy", "ctags": "universal-ctags"}


class Tally:
    """A pytest plugin that counts: one outcome per test, errors in set-up and collection are failures."""

    def __init__(self) -> None:
        self.outcome: dict[str, str] = {}

    def pytest_runtest_logreport(self, report: Any) -> None:
        if report.failed:
            self.outcome[report.nodeid] = "failed"
        elif report.skipped:
            self.outcome.setdefault(report.nodeid, "skipped")
        elif report.when == "call":
            self.outcome.setdefault(report.nodeid, "passed")

    def pytest_collectreport(self, report: Any) -> None:
        if report.failed:
            self.outcome[report.nodeid] = "failed"

    def count(self, outcome: str) -> int:
        return sum(1 for o in self.outcome.values() if o == outcome)


@command(unused=SIMULATED)
def test(shared: Shared,
         select: Annotated[list[str] | None, typer.Argument(help="Files and folders, or part of a test's name.")] = None,
         long: Annotated[bool, typer.Option("--long", help="Also run tests that take minutes or hours.")] = False,
         jobs: Annotated[int | None, typer.Option(metavar="N", min=1, max=MOST_JOBS, show_default="processors",
                                                  help="Number of tests to run in parallel.")] = None) -> int:
    """Run the test suite. The last line is `N passed, N failed, N skipped`."""
    import pytest

    os.chdir(paths.root())
    wanted = select or ["tests"]
    missing = [word for word in wanted if not _path(word).exists()]
    if missing and len(wanted) > 1:
        raise UserError(f'moscope test: "{missing[0]}": no such file or folder: expected files and folders, or one part of a name')
    if missing:
        _check_expression(missing[0])
    # Hundreds of tests run commands. With this variable, Python would compile their modules each time.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    _build(shared, ["unit_tests"] if missing else programs([_path(word) for word in wanted]))
    arguments = ["-q"] if shared.quiet else []
    arguments += ["--long"] if long else []
    jobs = jobs or (1 if missing else os.cpu_count() or 1)  # a part of a name selects few tests
    # Neighbouring tests stay on one worker, which shares their fixtures, until the other has nothing left to do.
    arguments += ["-n", str(jobs), "--dist", "worksteal"] if jobs > 1 else []
    arguments += ["tests", "-k", missing[0]] if missing else wanted
    tally = Tally()
    code = int(pytest.main(arguments, plugins=[tally]))
    said = " ".join(wanted)
    if code == NOTHING_SELECTED:
        raise UserError(f'moscope test: no test is called "{said}": expected a file, a folder or part of a name')
    if code == int(pytest.ExitCode.INTERRUPTED) and not tally.count("failed"):
        raise KeyboardInterrupt
    if code == int(pytest.ExitCode.USAGE_ERROR) and select:
        raise UserError(f'moscope test: "{said}" selects no tests (see above): {EXPECTED}')
    if code in (int(pytest.ExitCode.USAGE_ERROR), int(pytest.ExitCode.INTERNAL_ERROR)):
        raise SimulatorBug("pytest could not run the tests, see above")
    passed, failed, skipped = (tally.count(o) for o in ("passed", "failed", "skipped"))
    shared.result({"schema": "moscope.test/1", "ok": code == 0, "passed": passed, "failed": failed, "skipped": skipped})
    if not shared.json:
        print(f"{passed} passed, {failed} failed, {skipped} skipped")
    return errors.OK if code == 0 else errors.FOUND


def _check_expression(words: str) -> None:
    """Raises UserError if pytest could not read `words` as parts of names. Building and collecting the tests first would take long."""
    from _pytest.mark.expression import Expression

    try:
        Expression.compile(words)
    except SyntaxError as error:
        raise UserError(f'moscope test: "{words}" selects no tests (as an expression: {error.msg}): {EXPECTED}') from error


def _path(word: str) -> Path:
    """The file or folder of `FILE::NAME`."""
    return Path(word.split("::")[0])


def programs(selected: list[Path]) -> list[str]:
    """SCons' targets for the C++ tests that are needed: those in the folders, and of a file itself and of a Python file those beside
    it, whose programs it may run."""
    tests = paths.root() / "tests"
    selected = [path.resolve() for path in selected]
    if any(tests.is_relative_to(path) for path in selected):
        return ["unit_tests"]
    found: set[Path] = set()
    for path in (path for path in selected if path.is_relative_to(tests)):
        found |= {path} if path.match("test_*.cc") else set(path.rglob("test_*.cc") if path.is_dir() else path.parent.glob("test_*.cc"))
    return sorted(str((paths.build_dir() / file.relative_to(paths.root())).with_suffix("").relative_to(paths.root())) for file in found)


def _missing_packages() -> list[str]:
    return [package for program, package in PROGRAMS.items() if shutil.which(program) is None]


def _build(shared: Shared, targets: list[str]) -> None:
    """Builds the checking libraries, so that no test has to, and the targets, which are C++ tests. Those that do not compile are left
    for the collection to report as failures."""
    voice = bootstrap.Voice(shared.quiet)
    try:
        bootstrap.install_packages(voice, _missing_packages)
    except UserError as error:
        voice.say(f"tests that need these programs are skipped: {error}")
    bootstrap.ensure_checks([paths.protocol_dir() / f"{name}{buildproto.CHECKING}" for name in buildproto.known_protocols()], voice)
    failed: list[str] = []
    try:
        if targets:
            bootstrap.scons(Path(sys.prefix), ["-k", *targets], voice)
    except BuildFailed as error:
        log = (paths.build_dir() / "build.log").read_text(encoding="utf-8", errors="replace")
        failed = re.findall(r"^scons: \*\*\* \[build/\w+/(?:obj/)?(tests/\S+?)(?:\.os)?\] Error", log, re.MULTILINE)
        if not failed:
            raise
        if not voice.quiet:
            print(error.report(), file=sys.stderr)
    os.environ["MOSCOPE_NOT_BUILT"] = os.pathsep.join(failed)
