# SPDX-License-Identifier: BSD-3-Clause
"""The libraries of a dynamic program are those that the loader of this system finds; dependencies of packages are followed as apt has
them."""

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from moscope.errors import UserError
from moscope.guest import debian, libraries, packages

GRAPH = """\
tool
  Depends: libone
 |Depends: first
  Depends: second
  PreDepends: <virtual>
    provider
    other
libone
  Depends: libc6
<virtual>
libc6
first
provider
"""


def test_the_libraries_are_those_that_the_loader_lists() -> None:
    program = Path(sys.executable).resolve()
    listed = subprocess.run(["ldd", program], capture_output=True, text=True, check=False)
    if listed.returncode:
        pytest.skip("this system's loader lists no libraries")
    wanted = {Path(found[1]).resolve() for found in re.finditer(r"=> (/\S+)", listed.stdout)}
    found = libraries.of(program)
    assert wanted <= {path.resolve() for path in found.files.values()}
    assert any("ld-linux" in name for name in found.files)


def test_a_file_without_a_loader_needs_none(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("#!/bin/sh\n")
    assert libraries.dynamic(tmp_path / "text") is None and libraries.of(tmp_path / "text") == libraries.Found()


def test_the_folders_of_ld_so_conf_and_of_what_it_includes(tmp_path: Path) -> None:
    (tmp_path / "conf.d").mkdir()
    (tmp_path / "conf.d" / "a.conf").write_text("/opt/a  # ours\n")
    (tmp_path / "ld.so.conf").write_text("include conf.d/*.conf\n/opt/b\n")
    assert list(libraries.configured(tmp_path / "ld.so.conf")) == [Path("/opt/a"), Path("/opt/b")]


def test_of_alternatives_the_first_is_taken_and_of_a_virtual_package_the_first_provider() -> None:
    assert debian.graph(GRAPH)["tool"] == ["libone", "first", "provider"]


def test_what_a_package_depends_on_is_asked_once_and_again_if_the_answer_was_cut_off(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stand_ins: Callable[[dict[str, str]], None]) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    stand_ins({"apt-cache": f"#!/bin/sh\necho >>{tmp_path}/calls\ncat <<'EOF'\n{GRAPH}EOF\n"})
    wanted = ["tool", "libone", "first", "provider", "libc6"]

    def asked(times: int) -> None:
        assert debian.closure(["tool"], print) == wanted
        assert len((tmp_path / "calls").read_text().splitlines()) == times

    asked(1)
    asked(1)
    (kept,) = (packages.cache() / "chosen").iterdir()
    kept.write_text(kept.read_text()[:9])
    asked(2)
    asked(2)
    assert list((packages.cache() / "chosen").iterdir()) == [kept]


def test_a_name_that_is_no_packages_is_refused() -> None:
    with pytest.raises(UserError, match="--with: Not A Package: expected the name of a Debian package"):
        debian.closure(["Not A Package"], print)
