# SPDX-License-Identifier: BSD-3-Clause
"""The build as its users meet it: when it runs, what it is keyed by, how a protocol's own files are found."""

import errno
import fcntl
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from moscope import bootstrap, buildproto, paths, toolchain
from moscope.errors import BuildFailed, UserError

QUIET = bootstrap.Voice(quiet=True)


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A small checkout with the files that the launcher looks at."""
    for name in ("SConstruct", "requirements.txt", "src/sim/clock.cc", "src/mem/slicc/parse.py", "src/mem/ruby/protocol/P.roles.toml",
                 "src/python/moscope/cli.py", "src/python/moscope/toolchain.py", "src/python/bindings/engine.cc",
                 "docs/guide.md"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(name)
    monkeypatch.setattr(paths, "root", lambda: tmp_path)
    return tmp_path


@pytest.mark.parametrize("name, builds", [
    ("SConstruct", True), ("src/sim/clock.cc", True), ("src/mem/slicc/parse.py", True),
    ("src/mem/ruby/protocol/P.roles.toml", True), ("src/python/bindings/engine.cc", True), ("src/python/moscope/toolchain.py", True),
    ("src/python/moscope/cli.py", False), ("docs/guide.md", False),
])
def test_a_change_asks_for_a_build_exactly_where_the_build_reads(checkout: Path, name: str, builds: bool) -> None:
    before = bootstrap.build_digest()
    (checkout / name).write_text("changed")
    assert (bootstrap.build_digest() != before) == builds


def test_added_and_removed_sources_ask_for_a_build(checkout: Path) -> None:
    before = bootstrap.build_digest()
    (checkout / "src/sim/new.cc").touch()
    added = bootstrap.build_digest()
    (checkout / "src/sim/new.cc").unlink()
    assert added != before == bootstrap.build_digest()


def test_a_build_serves_every_user_cache_folder_and_python_of_one_binary_interface(
        checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = bootstrap.build_digest()
    monkeypatch.setenv("XDG_CACHE_HOME", "/another")
    monkeypatch.setattr(sys, "executable", "/opt/another/python3")
    assert bootstrap.build_digest() == before


@pytest.mark.parametrize("changes, why", [
    (lambda patch: patch.setattr(sys.implementation, "cache_tag", "cpython-399"), "is built for another Python (cpython-"),
    (lambda patch: patch.setattr(toolchain, "CXX", "g++-99"), "is built for another compiler ("),
    (lambda patch: (paths.root() / "SConstruct").write_text("changed"), "sources changed"),
])
def test_a_start_that_builds_says_why(checkout: Path, monkeypatch: pytest.MonkeyPatch, builds: list[list[str]],
                                      capsys: pytest.CaptureFixture[str], changes: Callable[[pytest.MonkeyPatch], object],
                                      why: str) -> None:
    bootstrap.ensure_built(Path("venv"), QUIET)
    changes(monkeypatch)
    bootstrap.ensure_built(Path("venv"), bootstrap.Voice(quiet=False))
    assert why in capsys.readouterr().err and builds == [[], []]


def test_a_build_that_is_current_is_used_where_it_cannot_be_written(checkout: Path, builds: list[list[str]],
                                                                    monkeypatch: pytest.MonkeyPatch) -> None:
    bootstrap.ensure_built(Path("venv"), QUIET)
    monkeypatch.setattr(bootstrap, "build", lambda *_: pytest.fail("writes the build folder"))
    bootstrap.ensure_built(Path("venv of another user"), QUIET)


def test_a_build_in_a_folder_that_cannot_be_written_says_so(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def mkdir(path: Path, *_: object, **__: object) -> None:
        raise OSError(errno.EROFS, "Read-only file system", str(path))

    monkeypatch.setattr(paths, "build_dir", lambda: checkout / "build" / "new")
    monkeypatch.setattr(Path, "mkdir", mkdir)
    with pytest.raises(OSError, match="Read-only file system"):
        bootstrap.scons(checkout / "venv", [], QUIET)


def test_a_build_that_fails_is_tried_again_and_one_that_ends_well_is_not(
        checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    runs: list[bool] = []
    outcome = [False, True]

    def scons(*_: object) -> None:
        runs.append(outcome.pop(0))
        if not runs[-1]:
            raise BuildFailed("x")
        paths.build_dir().mkdir(parents=True)

    monkeypatch.setattr(bootstrap, "scons", scons)
    monkeypatch.setattr(bootstrap, "install_packages", lambda voice: None)
    with pytest.raises(BuildFailed):
        bootstrap.ensure_built(Path("venv"), QUIET)
    bootstrap.ensure_built(Path("venv"), QUIET)
    bootstrap.ensure_built(Path("venv"), QUIET)
    assert runs == [False, True]


def test_a_build_that_stops_half_way_leaves_no_stamp_that_the_old_sources_would_match(
        checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    outcome = [True, False, True, True]

    def scons(*_: object) -> None:
        paths.build_dir().mkdir(parents=True, exist_ok=True)
        if not outcome.pop(0):
            raise BuildFailed("x")

    monkeypatch.setattr(bootstrap, "scons", scons)
    monkeypatch.setattr(bootstrap, "install_packages", lambda voice: None)
    bootstrap.ensure_built(Path("venv"), QUIET)
    source = checkout / "src/sim/clock.cc"
    before, old = source.stat(), source.read_text()
    source.write_text("edited, and longer")
    with pytest.raises(BuildFailed):
        bootstrap.ensure_built(Path("venv"), QUIET)
    source.write_text(old)
    os.utime(source, ns=(before.st_atime_ns, before.st_mtime_ns))
    bootstrap.ensure_built(Path("venv"), QUIET)
    assert outcome == [True], "built again"
    bootstrap.build(Path("venv"), ["unit_tests"], QUIET)  # from the sources of the last build, so the stamp stays valid
    bootstrap.ensure_built(Path("venv"), QUIET)


def test_what_the_declarations_beside_a_protocol_include_are_its_inputs(tmp_path: Path) -> None:
    for name, text in (("P.slicc", ""), ("P.prelude.sm", 'include "more.sm";'), ("more.sm", "")):
        (tmp_path / name).write_text(text)
    assert {p.name for p in buildproto.protocol_inputs(tmp_path / "P.slicc")} == {"P.slicc", "P.prelude.sm", "more.sm"}


# --- checking libraries: built when something asks for them ------------------------------------------------------


@pytest.fixture
def builds(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """The targets of each build of the small checkout, whose build makes files without compiling anything."""
    asked: list[list[str]] = []

    def scons(venv: Path, targets: list[str], voice: bootstrap.Voice) -> None:
        asked.append(targets)
        for name in targets or ["build/opt/protocol/P.so"]:
            (checkout / name).parent.mkdir(parents=True, exist_ok=True)
            (checkout / name).write_text(str(len(asked)))

    monkeypatch.setenv("MOSCOPE_VARIANT", "opt")
    monkeypatch.setattr(bootstrap, "scons", scons)
    monkeypatch.setattr(bootstrap, "install_packages", lambda voice: None)
    return asked


CHECKS = ["build/opt/protocol/P.check.so"]


def start_and_ask() -> list[str]:
    """A start, then a command that wants P's checking library; what the latter reports."""
    said: list[str] = []
    bootstrap.ensure_built(Path("venv"), QUIET)
    assert buildproto.check_inside("P", said.append) == paths.root() / CHECKS[0]
    return said


def test_a_start_builds_no_checking_library_and_asking_builds_it_once(checkout: Path, builds: list[list[str]]) -> None:
    bootstrap.ensure_built(Path("venv"), QUIET)
    assert builds == [[]] and not (checkout / CHECKS[0]).exists()
    assert start_and_ask() == ["building P.check.so (once after each change of the sources)"]
    assert builds == [[], CHECKS]
    assert start_and_ask() == [] and builds == [[], CHECKS]


def test_a_changed_source_makes_the_checking_library_anew_when_it_is_asked_for(checkout: Path, builds: list[list[str]]) -> None:
    start_and_ask()
    (checkout / "src/sim/clock.cc").write_text("changed")
    assert buildproto.check_inside("P", print) and builds == [[], CHECKS]  # under a command that is on its way nothing changes
    start_and_ask()
    assert builds == [[], CHECKS] * 2


def test_a_checking_library_that_is_missing_or_was_changed_is_built_again(checkout: Path, builds: list[list[str]]) -> None:
    start_and_ask()
    (checkout / CHECKS[0]).unlink()
    start_and_ask()
    os.utime(checkout / CHECKS[0], (0, 0))
    start_and_ask()
    assert builds == [[], CHECKS, CHECKS, CHECKS]


def test_a_checking_library_that_does_not_compile_is_tried_again(checkout: Path, builds: list[list[str]],
                                                                 monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object) -> None:
        raise BuildFailed("x")

    bootstrap.ensure_built(Path("venv"), QUIET)
    with monkeypatch.context() as broken:
        broken.setattr(bootstrap, "scons", fails)
        for _ in range(2):
            with pytest.raises(BuildFailed):
                start_and_ask()
    start_and_ask()
    assert builds == [[], CHECKS]


@pytest.mark.parametrize("targets, has, has_not", [
    ([], "MSI.so", "MSI.check.so"), (["protocols"], "MSI.so", "MSI.check.so"), (["checks"], "MSI.check.so", "MSI.so")])
def test_checking_libraries_are_a_target_of_their_own(targets: list[str], has: str, has_not: str) -> None:
    command = [sys.executable, "-m", "SCons", "-Q", "-n", "--tree=derived", f"variant={paths.variant()}", *targets]
    tree = subprocess.run(command, check=True, cwd=paths.root(), capture_output=True, text=True,
                          env=bootstrap.clean_environment()).stdout
    assert f"/{has}\n" in tree and f"/{has_not}\n" not in tree


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A user's protocol, whose build makes files without compiling anything."""
    def generate(slicc: Path, out: Path) -> str:
        out.mkdir(parents=True)
        (out / "P.json").touch()
        return ""

    monkeypatch.setattr(paths, "protocol_dir", lambda: tmp_path / "build")
    monkeypatch.setattr(buildproto, "generate", generate)
    monkeypatch.setattr(buildproto, "compile_protocol", lambda generated, library, *rest: library.touch())
    (tmp_path / "P.slicc").write_text('protocol "P";\n')
    return tmp_path / "P.slicc"


def test_a_users_checking_library_is_built_beside_the_timing_library_once(own: Path) -> None:
    said: list[str] = []
    made = buildproto.ensure_protocol(str(own), report=said.append)
    assert made.timing.exists() and not list(made.timing.parent.glob("*.check.so"))
    assert made.checking() == made.timing.with_name("P.check.so") and made.checking().exists()
    assert buildproto.ensure_protocol(str(own), report=said.append).checking() == made.checking()
    assert said.count("building P.check.so (once)") == 1


def test_what_gxx_warns_of_is_no_error_in_a_users_protocol(own: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    flags: list[list[str]] = []
    monkeypatch.setattr(buildproto, "compile_protocol", lambda generated, library, *rest: (flags.append(rest[-1]), library.touch()))
    made = buildproto.ensure_protocol(str(own))
    assert made.timing.exists() and made.checking().exists()
    assert ["-w" in given for given in flags] == [True, True]


def test_a_change_of_a_users_protocol_makes_its_checking_library_anew(own: Path) -> None:
    first = buildproto.ensure_protocol(str(own)).checking()
    own.write_text('protocol "P"; ')
    made = buildproto.ensure_protocol(str(own))
    assert first.parent != made.timing.parent and not made.timing.with_name("P.check.so").exists()
    assert made.checking().parent == made.timing.parent


def test_two_that_ask_at_once_build_a_users_checking_library_once(own: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = buildproto.ensure_protocol(str(own))
    begun, compiled = threading.Event(), []

    def slow(generated: Path, library: Path, *_: object) -> None:
        begun.set()
        time.sleep(0.1)
        compiled.append(library)
        library.touch()

    monkeypatch.setattr(buildproto, "compile_protocol", slow)
    other = threading.Thread(target=made.checking)
    other.start()
    assert begun.wait(120)
    assert made.checking().exists()
    other.join()
    assert len(compiled) == 1


def test_an_interrupted_link_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def run_tool(command: list[str]) -> None:
        if "-shared" in command:
            Path(command[command.index("-o") + 1]).write_text("half a library")
            raise KeyboardInterrupt

    monkeypatch.setattr(buildproto, "run_tool", run_tool)
    (tmp_path / "P").mkdir()
    (tmp_path / "P" / "P.cc").touch()
    with pytest.raises(KeyboardInterrupt):
        buildproto.compile_protocol(tmp_path / "P", tmp_path / "P.check.so", True, "opt", 1, lambda text: None)
    assert [p.name for p in tmp_path.iterdir()] == ["P"]


@pytest.mark.usefixtures("heard")
@pytest.mark.parametrize("name", ["INT", "TERM", "HUP"])
def test_a_tool_that_an_interruption_ended_is_no_failed_build(name: str) -> None:
    with pytest.raises(KeyboardInterrupt):
        buildproto.run_tool(["sh", "-c", f"kill -{name} $$"])


@pytest.mark.usefixtures("heard")
def test_an_interrupted_tool_is_a_failed_step_of_scons() -> None:
    """A thread of SCons that ended with an interruption would never report its step, for which SCons waits."""
    assert buildproto.scons_action(lambda: buildproto.run_tool(["sh", "-c", "kill -INT $$"])) == 1


# --- virtual environment and packages ----------------------------------------------------------------------------


def test_the_virtual_environment_is_keyed_by_what_it_holds_and_by_the_interpreter(
        checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = bootstrap.venv_dir()
    assert first == bootstrap.venv_dir()
    monkeypatch.setattr(sys, "executable", "/usr/bin/another")
    second = bootstrap.venv_dir()
    (checkout / "requirements.txt").write_text("lark==2\n")
    assert len({first, second, bootstrap.venv_dir()}) == 3


def test_an_interrupted_environment_is_made_anew(checkout: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    venv, commands = tmp_path / "venv", []
    venv.mkdir()

    def run(command: list[str], *_: object) -> int:
        commands.append(command)
        if len(commands) == 2:
            raise KeyboardInterrupt
        return 0

    monkeypatch.setattr(bootstrap, "run_logged", run)
    with pytest.raises(KeyboardInterrupt):
        bootstrap.make_venv(venv, QUIET)
    assert not bootstrap.venv_ready(venv)
    bootstrap.make_venv(venv, QUIET)
    assert bootstrap.venv_ready(venv) and "--clear" in commands[2]
    bootstrap.make_venv(venv, QUIET)
    assert len(commands) == 4


def test_a_lock_keeps_a_second_start_waiting(tmp_path: Path) -> None:
    lock = tmp_path / "venv.lock"
    with bootstrap.locked(lock, QUIET, "setting up"), lock.open("w") as other, pytest.raises(BlockingIOError):
        fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
    with lock.open("w") as other:
        fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)


def test_without_root_the_error_gives_one_command_for_an_administrator(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(toolchain, "missing_packages", lambda: ["libgtest-dev", "g++"])
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setattr(bootstrap.shutil, "which", lambda name: "/usr/bin/apt-get" if name == "apt-get" else None)
    wanted = r"expected an administrator to run, as root,\n\n  apt-get update && .*install .* g\+\+ libgtest-dev"
    with pytest.raises(UserError, match=wanted):
        bootstrap.install_packages(QUIET)


def test_nothing_is_installed_where_nothing_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(toolchain, "missing_packages", lambda: [])
    monkeypatch.setattr(bootstrap, "run_logged", lambda *_: pytest.fail("ran a command"))
    bootstrap.install_packages(QUIET)


def test_a_compiler_that_is_missing_asks_for_all_that_it_would_need(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(toolchain.shutil, "which", lambda name: None)
    assert {"g++", *toolchain.HEADERS.values()} <= set(toolchain.missing_packages())


def test_this_machine_has_all_that_it_was_built_with() -> None:
    assert not set(toolchain.missing_packages()) & {"g++", *toolchain.HEADERS.values()}


def test_an_unknown_variant_is_a_user_error() -> None:
    got = subprocess.run([str(paths.root() / "moscope"), "--help"], capture_output=True, text=True, check=False,
                         env={**os.environ, "MOSCOPE_VARIANT": "fast"})
    assert got.returncode == 2 and 'MOSCOPE_VARIANT: no variant called "fast"' in got.stderr


def test_a_protocols_files_are_those_that_it_includes(tmp_path: Path) -> None:
    texts = {"P.slicc": 'protocol "P";\ninclude "P-a.sm";\ninclude "Prelude.slicc";\n', "P-a.sm": '  include "P-b.sm";\n',
             "P-b.sm": 'include "P-a.sm";\n', "Q-a.sm": ""}
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    assert [p.name for p in buildproto.protocol_inputs(tmp_path / "P.slicc")] == ["P-a.sm", "P-b.sm", "P.slicc"]


def test_a_protocols_files_are_found_where_the_compiler_finds_them(tmp_path: Path) -> None:
    (tmp_path / "parts").mkdir()
    texts = {"P.slicc": "protocol \"P\"; include 'parts/a.sm'; /* more: */ include\n\"b.sm\";\n", "parts/a.sm": 'include "b.sm";\n',
             "parts/b.sm": f'include "{"c" * 5000}.sm";\n', "b.sm": ""}
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    found = buildproto.protocol_inputs(tmp_path / "P.slicc")
    assert [str(path.relative_to(tmp_path)) for path in found] == ["P.slicc", "b.sm", "parts/a.sm", "parts/b.sm"]


def test_a_protocols_key_changes_with_its_text_and_not_with_its_neighbours(tmp_path: Path) -> None:
    slicc = tmp_path / "P.slicc"
    slicc.write_text('protocol "P";\n')
    first = buildproto.content_key(slicc, "opt")
    (tmp_path / "Q.sm").write_text("machine")
    assert buildproto.content_key(slicc, "opt") == first != buildproto.content_key(slicc, "asan")
    slicc.write_text('protocol "P"; ')
    assert buildproto.content_key(slicc, "opt") != first


def test_a_protocol_is_found_by_name_or_by_path(tmp_path: Path) -> None:
    assert buildproto.find_protocol("MSI").name == "MSI.slicc"
    (tmp_path / "P.slicc").touch()
    assert buildproto.find_protocol(str(tmp_path / "P.slicc")) == tmp_path / "P.slicc"
    with pytest.raises(UserError, match="no such file"):
        buildproto.find_protocol(str(tmp_path / "Q.slicc"))
    with pytest.raises(UserError, match=": a folder: expected the path of a protocol's .slicc file"):
        buildproto.find_protocol(str(tmp_path))


def test_the_matplotlib_backend_of_a_notebook_does_not_reach_the_front_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MPLBACKEND", "module://matplotlib_inline.backend_inline")
    assert "MPLBACKEND" not in bootstrap.clean_environment()


@pytest.mark.parametrize(("asked", "error"), [
    (["--json"], "moscope build: no option called --json: expected --quiet, or targets: engine, "),
    (["-z"], "moscope build: no option called -z: expected -c, -k, -n or -jN"),
    (["unit-tests"], 'moscope build: no target called "unit-tests": expected a known name, such as unit_tests')])
def test_an_unknown_target_is_a_user_error(asked: list[str], error: str) -> None:
    with pytest.raises(UserError, match=f"^{error}"):
        bootstrap.build_targets(asked)


def test_a_file_that_the_build_does_not_make_is_the_users_to_mend(checkout: Path, tmp_path: Path,
                                                                  monkeypatch: pytest.MonkeyPatch) -> None:
    def run_logged(command: list[str], log: Path, *_: object) -> int:
        log.parent.mkdir(parents=True, exist_ok=True)
        log.write_text("steps 2\nscons: *** Do not know how to make File target `docs/x' (/checkout/docs/x).  Stop.\n")
        return 2

    monkeypatch.setattr(bootstrap, "run_logged", run_logged)
    with pytest.raises(UserError, match=r"^moscope build: docs/x: no such target: expected a file that the build makes, or targets: eng"):
        bootstrap.scons(tmp_path / "venv", ["docs/x"], QUIET)


def test_a_build_takes_targets_files_and_options_of_a_letter() -> None:
    assert bootstrap.build_targets(["--quiet", "-c", "engine", "build/opt/x.so"]) == ["-c", "engine", "build/opt/x.so"]


def test_builds_of_two_threads_keep_a_log_each(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    paths.build_dir().mkdir(parents=True)
    both = threading.Barrier(2, timeout=60)

    def run_logged(command: list[str], log: Path, *_: object) -> int:
        log.write_text("built")
        both.wait()
        return 0

    monkeypatch.setattr(bootstrap, "run_logged", run_logged)
    with ThreadPoolExecutor(2) as threads:
        list(threads.map(lambda target: bootstrap.scons(Path("venv"), [target], QUIET), ["a", "b"]))
    assert [file.name for file in paths.build_dir().glob("*.log")] == ["build.log"]


def test_two_threads_that_need_one_protocol_both_have_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    slicc = tmp_path / "P.slicc"
    both = threading.Barrier(2, timeout=60)

    def generate(_: Path, generated: Path) -> str:
        generated.mkdir(parents=True)
        (generated / "P.json").write_text("{}")
        both.wait()
        return ""

    monkeypatch.setattr(buildproto, "generate", generate)
    with ThreadPoolExecutor(2) as threads:
        list(threads.map(lambda _: buildproto.generate_outside(slicc, tmp_path / "made", lambda text: None), range(2)))
    assert sorted(file.name for file in tmp_path.iterdir()) == ["made"]
