# SPDX-License-Identifier: BSD-3-Clause
"""Constructs of a protocol that may be mistakes cause warnings each time that it is used, and errors where the user asks for
that; the project's own protocols are always compiled so."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from moscope import buildproto, jsonio, paths
from moscope.errors import BuildFailed, UserError
from moscope.protocol import verify

HANDOVER = Path(__file__).parent / "protocols" / "Handover.slicc"
# What stands in Handover's cache, what comes in its place, and what the compiler says of that.
OMISSIONS = (
    ("transition({MI, II}, {Read, Write})", "transition({MI, II}, {Read})",
     "state 'II' of machine 'L1Cache': no transition for Write"),
    ("  action(wk_wake,", '  action(id_idle, "id", desc="Nothing") {\n  }\n\n  action(wk_wake,',
     "action 'id_idle': unused"),
    ("    II, AccessPermission:Invalid,", '    XX, AccessPermission:Busy, desc="Nowhere";\n    II, AccessPermission:Invalid,',
     "state 'XX' of machine 'L1Cache': unreachable"),
    ("  action(dc_deallocate,",
     '  action(dp_print, "dp", desc="A value too many") {\n    DPRINTF(RubySlicc, "%s", address, 1);\n  }\n\n  action(dc_deallocate,',
     "DPRINTF: 2 values for the format: expected 1"),
)
SAID = [said for _, _, said in OMISSIONS]


@pytest.fixture
def flawed(tmp_path: Path) -> Path:
    """A copy of Handover with these omissions."""
    for path in HANDOVER.parent.glob("Handover*"):
        shutil.copy(path, tmp_path)
    cache = tmp_path / "Handover-cache.sm"
    text = cache.read_text(encoding="utf-8")
    for before, after, _ in OMISSIONS:
        assert text.count(before) == 1
        text = text.replace(before, after)
    cache.write_text(text, encoding="utf-8")
    return tmp_path / HANDOVER.name


@pytest.fixture
def no_compiler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Builds go to a folder of their own, and what is generated is not compiled; the names of the libraries."""
    made: list[str] = []
    monkeypatch.setattr(paths, "protocol_dir", lambda: tmp_path / "build")
    monkeypatch.setattr(buildproto, "compile_protocol", lambda generated, library, *rest: made.append(library.name))
    return made


def all_of(severity: str, text: str) -> bool:
    return all(f": {severity}: {said}" in text for said in SAID)


def test_a_build_that_is_kept_repeats_its_warnings(flawed: Path, no_compiler: list[str], tmp_path: Path) -> None:
    said: list[list[str]] = [[], []]
    first, second = (buildproto.ensure_protocol(str(flawed), report=texts.append) for texts in said)
    assert first.interface == second.interface and not no_compiler  # generated once, compiled when a library is asked for
    assert first.warnings == second.warnings == said[0][-1] and said[1] == [first.warnings]
    assert all_of("warning", first.warnings) and f"{tmp_path}/Handover-cache.sm:" in first.warnings


def test_an_exploration_shows_the_warnings_of_its_protocol(flawed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_compiler(command: list[str]) -> None:
        raise BuildFailed("none")

    monkeypatch.setattr(paths, "user_protocol_dir", lambda: tmp_path / "build")
    monkeypatch.setattr(buildproto, "run_tool", no_compiler)
    said: list[str] = []
    with pytest.raises(BuildFailed):
        verify.build(str(flawed), "small", [], verify.Bounds(), said.append)
    assert all_of("warning", said[0]) and f"{tmp_path}/Handover-cache.sm:" in said[0]


def test_warnings_of_a_kept_build_name_the_present_place_of_the_protocol(flawed: Path, no_compiler: list[str], tmp_path: Path) -> None:
    first = buildproto.ensure_protocol(str(flawed))
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    for path in tmp_path.glob("Handover*"):
        path.rename(elsewhere / path.name)
    moved = buildproto.ensure_protocol(str(elsewhere / flawed.name))
    assert moved.interface == first.interface and not no_compiler  # not generated again
    assert all_of("warning", moved.warnings) and moved.warnings == first.warnings.replace(str(tmp_path), str(elsewhere))


@pytest.mark.parametrize("command", ["build", "check"])
def test_strict_makes_errors_of_them(moscope: Any, flawed: Path, command: str) -> None:
    got = moscope("protocol", command, str(flawed), "--strict")
    assert got.returncode == UserError.exit_code and got.stdout == ""
    assert all_of("error", got.stderr) and "warning" not in got.stderr


def test_strict_refuses_a_build_that_is_kept(flawed: Path, no_compiler: list[str]) -> None:
    buildproto.ensure_protocol(str(flawed))
    with pytest.raises(UserError) as refused:
        buildproto.ensure_protocol(str(flawed), strict=True)
    assert all_of("error", str(refused.value))


def test_a_protocol_without_warnings_is_built_strictly(moscope: Any) -> None:
    got = moscope("protocol", "build", str(HANDOVER), "--strict", "--json", timeout=600)
    assert got.returncode == 0, got.stderr
    document = json.loads(got.stdout)
    jsonio.validate(document)
    assert document["warnings"] == "" and "warning" not in got.stderr  # which names the files that it compiles, if any


def test_the_projects_own_protocols_are_generated_strictly(flawed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert all_of("warning", buildproto.generate(flawed, tmp_path / "generated"))
    monkeypatch.setattr(buildproto, "known_protocols", lambda: {"Handover": flawed})
    with pytest.raises(UserError) as refused:
        buildproto.generate(flawed, tmp_path / "generated")
    assert all_of("error", str(refused.value))
