# SPDX-License-Identifier: BSD-3-Clause
"""The package: an installation works without the checkout, is only read, and builds what users bring in their own cache.

Most tests lay the files of a wheel out as pip would; the long one builds a wheel and installs it in an empty environment.
"""

import importlib.util
import json
import os
import shutil
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

from moscope import buildproto, paths

Run = Callable[..., subprocess.CompletedProcess[str]]
HANDOVER = paths.root() / "tests/protocol/protocols/Handover.slicc"


@pytest.fixture(scope="module")
def contents() -> ModuleType:
    """src/python/wheel/contents.py, which is no part of the package."""
    spec = importlib.util.spec_from_file_location("contents", paths.root() / "src/python/wheel/contents.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def site(contents: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A read-only folder that holds what a wheel installs."""
    if paths.variant() != "opt":
        pytest.skip("a wheel has the variant opt")
    for name in buildproto.known_protocols():
        buildproto.ensure_protocol(name).checking()
    folder = tmp_path_factory.mktemp("installed") / "site"
    for source, place in contents.files(paths.root()):
        target = folder / place
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(source, target)
    for path in (folder, *folder.rglob("*")):
        path.chmod(path.stat().st_mode & ~(stat.S_IWUSR | stat.S_IWGRP | stat.S_IWOTH))
    return folder


@pytest.fixture
def python(site: Path, tmp_path: Path) -> Run:
    """Runs Python with the installation, in an empty folder, as a user whose home is empty."""

    def run(*arguments: str, path: str = os.environ["PATH"]) -> subprocess.CompletedProcess[str]:
        env = {"PATH": path, "HOME": str(tmp_path / "home"), "PYTHONPATH": str(site), "PYTHONDONTWRITEBYTECODE": "1"}
        return subprocess.run([sys.executable, "-P", *arguments], env=env, cwd=tmp_path, capture_output=True, text=True, check=False,
                              timeout=300)

    return run


def listing(folder: Path) -> dict[str, float]:
    return {str(p.relative_to(folder)): p.stat().st_mtime for p in folder.rglob("*")}


def test_an_installation_uses_no_file_of_the_checkout(python: Run) -> None:
    got = python("-c", "import sys; from moscope.cli import main; code = main(['latency', '--json']); "
                       "print(open('/proc/self/maps').read(), *[m.__file__ for m in sys.modules.values() if getattr(m, '__file__', None)], "
                       "sep='\\n', file=sys.stderr); sys.exit(code)")
    assert got.returncode == 0, got.stderr
    assert json.loads(got.stdout)["rows"]
    assert "libmoscope_engine.so" in got.stderr and "MOESI_HTAssist.so" in got.stderr
    assert f"{paths.root()}/" not in got.stderr


def test_the_libraries_beside_the_engine_are_used_and_have_their_licences(site: Path) -> None:
    build = site / "moscope/data/build/opt"
    own = [p for p in build.glob("lib*.so*") if p.suffix != ".copyright" and p.name != "libmoscope_engine.so"]
    assert len(own) >= 3
    listed = subprocess.run(["ldd", build / "libmoscope_engine.so"], capture_output=True, text=True, check=True).stdout
    for library in own:
        assert str(library) in listed
        assert library.with_name(f"{library.name}.copyright").stat().st_size > 100


def test_a_supplied_protocol_is_checked_without_a_compiler(python: Run) -> None:
    got = python("-m", "moscope", "protocol", "check", "MSI", "--cores", "2", "--ops", "1000", "--json", path="/nonexistent")
    assert got.returncode == 0, got.stderr
    assert json.loads(got.stdout)["ok"]


def test_supplied_workloads_need_no_compiler(python: Run, site: Path) -> None:
    got = python("-c", "from moscope import workloads; print(*workloads.programs().values())", path="/nonexistent")
    assert got.returncode == 0, got.stderr
    programs = [Path(name) for name in got.stdout.split()]
    assert {"counter", "exim", "falseshare"} <= {p.name for p in programs}
    folder = programs[0].parent
    assert {"pedsort", "launcher"} <= {p.name for p in folder.iterdir()}
    assert (folder / "libdb5.3-dev.copyright").stat().st_size > 100
    assert all(p.is_relative_to(site) and p.read_bytes().startswith(b"\x7fELF") for p in programs)


def test_a_users_protocol_is_built_in_the_users_cache(python: Run, site: Path, tmp_path: Path) -> None:
    before = listing(site)
    got = python("-c", "import sys; from moscope import buildproto; buildproto.ensure_protocol(sys.argv[1]).timing", str(HANDOVER))
    assert got.returncode == 0, got.stderr
    [built] = (tmp_path / "home/.cache/moscope/protocol").glob("Handover-*")
    assert (built / "Handover.so").exists()
    assert listing(site) == before


def test_a_users_protocol_without_a_compiler_says_what_to_install(python: Run) -> None:
    got = python("-m", "moscope", "protocol", "check", str(HANDOVER), path="/nonexistent")
    assert got.returncode == 2
    assert "g++" in got.stderr and "expected" in got.stderr


def test_an_installation_verifies_a_protocol(python: Run, site: Path) -> None:
    before = listing(site)
    got = python("-m", "moscope", "protocol", "verify", "MSI", "--no-evict", "--json")
    assert got.returncode == 0, got.stderr
    assert json.loads(got.stdout)["complete"] and listing(site) == before


def test_an_installation_has_no_commands_that_need_the_checkout(python: Run) -> None:
    got = python("-m", "moscope", "test")
    assert got.returncode == 2 and 'no command called "test"' in got.stderr


def test_dependencies_are_those_of_requirements_txt(contents: ModuleType) -> None:
    named = contents.named_packages("# own\nnumpy==2.4.6\nrich==15.0.0\n# then what these need:\npytz==1.0\n")
    assert [contents.accepted(*item) for item in named.items()] == ["numpy>=2.4.6,<3", "rich>=15.0.0,<16"]


@pytest.mark.long
def test_a_wheel_in_an_empty_environment_measures_latency_and_runs_four_cores(tmp_path: Path) -> None:
    clean = {"PATH": os.environ["PATH"], "HOME": str(tmp_path / "home")}
    pip_settings = {k: v for k, v in os.environ.items() if k.startswith("PIP_")}
    build = {**clean, **pip_settings, "HOME": os.environ["HOME"]}
    bin_ = tmp_path / "empty/bin"
    subprocess.run([sys.executable, "-m", "venv", tmp_path / "empty"], check=True)
    subprocess.run([bin_ / "pip", "wheel", "--no-deps", "-w", tmp_path / "wheels", paths.root()], check=True, env=build)
    [wheel] = (tmp_path / "wheels").glob("moscope-*-linux_x86_64.whl")
    subprocess.run([bin_ / "pip", "install", wheel], check=True, env={**clean, **pip_settings})
    (tmp_path / "home/.cache/moscope").mkdir(parents=True)
    if (paths.cache_dir() / "guest").is_dir():  # packages of the guest, downloaded once
        shutil.copytree(paths.cache_dir() / "guest", tmp_path / "home/.cache/moscope/guest", symlinks=True,
                        ignore=shutil.ignore_patterns("checkpoints"))

    def moscope(*arguments: str) -> dict[str, object]:
        got = subprocess.run([bin_ / "moscope", *arguments, "--json"], cwd=tmp_path, env=clean, capture_output=True, text=True, check=False)
        assert got.returncode == 0, got.stderr
        found: dict[str, object] = json.loads(got.stdout)
        return found

    assert moscope("latency")["rows"]
    run = moscope("run", "--workload", "falseshare", "--kernel", "distro", "--cores", "4", "--windows", "1")
    assert run["ok"] and (tmp_path / str(run["report"])).is_file()
