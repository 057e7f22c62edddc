# SPDX-License-Identifier: BSD-3-Clause
"""The header of each tiny protocol lists the diagnostics that it expects; the compiler reports these and no others.

`// expect: ok`, `// expect-error: LINE: text`, `// expect-warning: LINE: text`; `text` is the beginning of the message.
`// options: strict` compiles as the project's own protocols are compiled. Warnings count only in files that expect one.
"""
from __future__ import annotations

import re
from pathlib import Path

import pytest

from slicc.check import STRICT
from slicc.compile import compile_protocol

FOLDER = Path(__file__).parent / "protocols"
FILES = sorted(FOLDER.glob("*.slicc"))
EXPECTATION = re.compile(r"// expect-(error|warning): (\d+): (.*)")


def header(path: Path) -> list[str]:
    return [line for line in path.read_text().splitlines()[:12] if line.startswith("//")]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_the_compiler_reports_what_the_header_expects(path: Path) -> None:
    lines = header(path)
    expected = [(match[1], int(match[2]), match[3]) for match in map(EXPECTATION.match, lines) if match]
    assert expected or "// expect: ok" in lines, "the file expects nothing"
    program, diagnostics = compile_protocol(str(path), STRICT if "// options: strict" in lines else ())
    assert all(": expected " in d.message for d in diagnostics.found)
    expects_warnings = any(severity == "warning" for severity, _, _ in expected)
    found = [d for d in diagnostics.found if d.severity == "error" or expects_warnings]
    assert (program is None) == any(severity == "error" for severity, _, _ in expected)
    unmatched = [d.header() for d in found
                 if not any(d.severity == severity and d.loc.line == line and d.loc.file == str(path) and d.message.startswith(text)
                            for severity, line, text in expected)]
    assert not unmatched
    assert len(found) == len(expected), "something expected was not found"


def test_there_are_many_tiny_protocols_and_most_are_rejected() -> None:
    rejected = [path for path in FILES if any(line.startswith("// expect-error") for line in header(path))]
    assert len(FILES) >= 100 and len(rejected) >= 80
