# SPDX-License-Identifier: BSD-3-Clause
"""`moscope test` runs and builds what its words select."""

from pathlib import Path

import pytest

from moscope import cli, paths
from moscope.commands import test as of_test

TESTS = paths.root() / "tests"


@pytest.fixture
def given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """What `moscope test` builds, and pytest's arguments; neither is done."""
    seen: list[list[str]] = []

    def main(arguments: list[str], plugins: list[object]) -> int:
        seen.append(arguments)
        return 0

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(of_test, "_build", lambda shared, targets: seen.append(targets))
    monkeypatch.setattr(pytest, "main", main)
    return seen


def test_python_tests_alone_build_no_cxx_tests() -> None:
    assert of_test.programs([TESTS / "python", TESTS / "docs" / "test_tables.py"]) == []


def test_the_cxx_tests_of_a_folder_and_those_beside_a_python_file_are_built() -> None:
    target = str((paths.build_dir() / "tests" / "schema" / "test_records").relative_to(paths.root()))
    assert target in of_test.programs([TESTS / "schema"])
    assert target in of_test.programs([TESTS / "schema" / "test_both_sides.py"])
    assert of_test.programs([TESTS / "schema" / "test_records.cc"]) == [target]
    assert target in of_test.programs([TESTS / "schema" / "no_test.cc"])
    assert of_test.programs([TESTS]) == of_test.programs([TESTS / "docs", paths.root()]) == ["unit_tests"]


def test_several_folders_and_files_are_run_together(given: list[list[str]]) -> None:
    assert cli.main(["test", "--jobs", "1", "tests/python", "tests/docs/test_tables.py"]) == 0
    assert given == [[], ["tests/python", "tests/docs/test_tables.py"]]


def test_without_words_and_with_a_part_of_a_name_all_cxx_tests_are_built(given: list[list[str]]) -> None:
    assert cli.main(["test", "--jobs", "1"]) == cli.main(["test", "false_sharing"]) == 0
    assert given == [["unit_tests"], ["tests"], ["unit_tests"], ["tests", "-k", "false_sharing"]]


def test_a_name_among_several_words_is_a_user_error(given: list[list[str]], capfd: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["test", "tests/python", "false_sharing"]) == 2
    assert 'moscope test: "false_sharing": no such file or folder: expected files and folders' in capfd.readouterr().err
    assert not given
