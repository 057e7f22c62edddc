# SPDX-License-Identifier: BSD-3-Clause
"""A mistake in a file that extends moscope is reported with the file and line: kinds of file that the guides of docs/extending do not
cover."""

import re
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

import analysis.exports
import analysis.tables
from moscope.config import cpu, load_machine
from moscope.errors import UserError
from moscope.sweeps import jobs


@pytest.mark.parametrize(("text", "says"), [
    ("processor = 5\n", "mine.py: defines no `processor`: expected `processor`, a Processor"),
    ("x = 1\nprocessor = Processor()\n", "mine.py:2: NameError: name 'Processor' is not defined: expected"),
])
def test_a_wrong_description_of_a_processor_is_refused_by_file_and_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str,
                                                                        says: str) -> None:
    monkeypatch.setattr(cpu, "processors_dir", lambda: tmp_path)
    (tmp_path / "mine.py").write_text(text, encoding="utf-8")
    with pytest.raises(UserError, match=re.escape(says)):
        cpu.cpu_json(load_machine("small", ["cpu=mine"]))


@pytest.mark.parametrize(("package", "find", "name"), [
    (analysis.exports, lambda: analysis.exports.find("mine_to_test"), "EXPORT"),
    (jobs, jobs.all_jobs, "JOB"),
    (analysis.tables, analysis.tables.found, "TABLES"),
], ids=["export", "job", "table"])
@pytest.mark.parametrize("text", ["x = 1\n", "x = 1\ny = nothing\n", "EXPORT = JOB = TABLES = 1\n"], ids=["empty", "wrong", "number"])
def test_a_wrong_module_is_refused_by_file_and_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, package: ModuleType,
                                                    find: Callable[[], object], name: str, text: str) -> None:
    (tmp_path / "mine_to_test.py").write_text(text, encoding="utf-8")
    monkeypatch.setattr(package, "__path__", [*package.__path__, str(tmp_path)])
    monkeypatch.delitem(sys.modules, f"{package.__name__}.mine_to_test", raising=False)  # of the parameters before
    says = "mine_to_test.py:2: NameError: .*" if "nothing" in text else f"mine_to_test.py: defines no `{name}`"
    with pytest.raises(UserError, match=f"{says}: expected .*{name}"):
        find()
