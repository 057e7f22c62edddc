# SPDX-License-Identifier: BSD-3-Clause
"""What all tests share: C++ tests as pytest items, the marker `long`, fixtures for the front end and the engine.

A GoogleTest case is the item `tests/sim/test_clock.cc::Suite.Case`; each `test_*.cc` is a program of its own under
the build folder. A case whose suite's name ends in `Long` is long.
"""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import pytest

from moscope import bootstrap, paths, toolchain
from moscope.errors import UserError

GTEST_SECONDS = 600


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--long", action="store_true", help="run the tests marked `long` too")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "long: takes minutes or hours; run with --long")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("--long"):
        return
    for item in items:
        if item.get_closest_marker("long"):
            item.add_marker(pytest.mark.skip(reason="long: runs with --long"))


def stale_build(folder: Path, digest: str) -> str:
    """What to say of a build that is older than the sources: engine and checking libraries are then those of the build."""
    stamp = folder / "built"
    if not stamp.exists() or stamp.read_text(encoding="utf-8") == digest:
        return ""
    return f"{folder}: is older than the sources: these results are of the old build; `./moscope build` builds again"


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if said := stale_build(paths.build_dir(), bootstrap.build_digest()):
        terminalreporter.write_line(said, red=True)


# --- C++ tests ----------------------------------------------------------------------------------------------------


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    if file_path.suffix == ".cc" and file_path.name.startswith("test_"):
        return GTestFile.from_parent(parent, path=file_path)
    return None


class GTestFile(pytest.File):
    """One test_*.cc with the program built from it."""

    def collect(self) -> Iterator[pytest.Item]:
        name = str(self.path.relative_to(paths.root()).with_suffix(""))
        program = paths.build_dir() / name
        if name in os.environ.get("MOSCOPE_NOT_BUILT", "").split(os.pathsep):
            raise self.CollectError(f"{self.path}: did not compile: {paths.build_dir() / 'build.log'} tells why")
        if not program.exists():
            raise self.CollectError(f"{self.path}: is not built: `./moscope build unit_tests` builds it")
        listed = subprocess.run([program, "--gtest_list_tests"], capture_output=True, text=True, check=True)
        suite = ""
        for line in listed.stdout.splitlines():
            text = line.split("#")[0].rstrip()
            if text.startswith("  "):
                yield GTestCase.from_parent(self, name=suite + text.strip(), program=program)
            elif text.endswith("."):
                suite = text


class GTestCase(pytest.Item):
    """One case, run in a process of its own: a crash fails it and nothing else."""

    def __init__(self, *, program: Path, **kw: object) -> None:
        super().__init__(**kw)  # type: ignore[arg-type]
        self.program = program
        if self.name.split(".")[0].split("/")[-1].endswith("Long"):
            self.add_marker(pytest.mark.long)

    def runtest(self) -> None:
        limit = None if self.get_closest_marker("long") else GTEST_SECONDS
        command = [str(self.program), f"--gtest_filter={self.name}"]
        try:
            got = subprocess.run(command, capture_output=True, text=True, timeout=limit, cwd=paths.root(), check=False)
        except subprocess.TimeoutExpired:
            pytest.fail(f"not done after {limit} s: {' '.join(command)}", pytrace=False)
        if got.returncode != 0:
            pytest.fail(f"{' '.join(command)} ended with {got.returncode}\n{got.stdout}{got.stderr}", pytrace=False)
        if "[  SKIPPED ]" in got.stdout:
            pytest.skip("skipped by the test itself")

    def reportinfo(self) -> tuple[Path, int, str]:
        return self.path, 0, self.name


# --- fixtures -----------------------------------------------------------------------------------------------------

Moscope = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="session")
def moscope_in() -> Callable[[Path], Moscope]:
    """Gives what runs the front end in a folder, for results that several tests look at."""

    def at(folder: Path) -> Moscope:
        def run(*arguments: str, timeout: float = 120, **kw: object) -> subprocess.CompletedProcess[str]:
            env = {**os.environ, "PYTHONPATH": str(paths.root() / "src" / "python"), "NO_COLOR": "1", "TERM": "dumb"}
            return subprocess.run([sys.executable, "-P", "-m", "moscope", *arguments], capture_output=True, text=True,
                                  timeout=timeout, cwd=folder, env=env, check=False, **kw)  # type: ignore[call-overload]

        return run

    return at


@pytest.fixture
def moscope(tmp_path: Path, moscope_in: Callable[[Path], Moscope]) -> Moscope:
    """Runs the front end in an empty folder: `moscope("protocol", "list", "--json")`; stdout and stderr as text."""
    return moscope_in(tmp_path)


@pytest.fixture
def heard() -> Iterator[None]:
    """Signals interrupt the test, and end what it starts. A test run in the background, or below nohup, ignores them, and so would its
    children."""
    before = {number: signal.signal(number, signal.default_int_handler) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.fixture(scope="session")
def engine() -> ModuleType:
    """The native module."""
    from moscope import _engine

    return _engine


@pytest.fixture(scope="session")
def root() -> Path:
    """The checkout."""
    return paths.root()


@pytest.fixture(scope="session")
def clang_format() -> Callable[..., str]:
    """Gives what clang-format would change in files, one message for each place."""
    try:
        bootstrap.install_packages(bootstrap.Voice(quiet=True), toolchain.missing_lint_packages)
    except UserError as error:
        pytest.skip(f"clang-format cannot be installed: {error}")
    version = subprocess.run(["clang-format", "--version"], capture_output=True, text=True, check=True).stdout
    if f"version {toolchain.CLANG_FORMAT}." not in version:
        pytest.skip(f"the layout is that of clang-format {toolchain.CLANG_FORMAT}; this system has {version.strip()}")

    def found(*files: str | Path) -> str:
        command = ["clang-format", "--dry-run", f"--style=file:{paths.root() / '.clang-format'}", *map(str, files)]
        return subprocess.run(command, cwd=paths.root(), capture_output=True, text=True, check=True).stderr

    return found


@pytest.fixture
def stand_ins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[dict[str, str]], None]:
    """Puts scripts of the test's own, by name, in place of the system's programs."""

    def put(scripts: dict[str, str]) -> None:
        programs = tmp_path / "programs"
        programs.mkdir()
        for name, text in scripts.items():
            (programs / name).write_text(text)
            (programs / name).chmod(0o755)
        monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")

    return put
