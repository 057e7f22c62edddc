# SPDX-License-Identifier: BSD-3-Clause
"""The schema of a document describes every key that the command writes."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from moscope import jsonio

Moscope = Callable[..., subprocess.CompletedProcess[str]]
SCRIPT = """title = "two cores"
protocol = "MSI"
script = "c0 st A@n0; c1 ld A@n0"
checked = true
"""


@pytest.mark.parametrize("arguments", [
    ("protocol", "check", "MSI", "--cores", "4", "--ops", "2000"),
    ("trace", "c0 st A@n0; c1 ld A@n0"),
    ("trace", "checked.toml"),
    ("latency", "--bandwidth"),
], ids=lambda arguments: " ".join(arguments[:2]))
def test_each_key_of_a_document_and_of_its_rows_is_in_its_schema(moscope: Moscope, tmp_path: Path, arguments: tuple[str, ...]) -> None:
    (tmp_path / "checked.toml").write_text(SCRIPT)
    got = moscope(*arguments, "--machine", "small", "--json")
    assert got.returncode == 0, got.stderr
    document: dict[str, Any] = json.loads(got.stdout)
    jsonio.validate(document)
    described = jsonio.schema(jsonio.schema_file(document["schema"]))["properties"]
    assert set(document) <= set(described)
    of_rows = {key for row in document.get("rows", []) for key in row}
    assert not document.get("rows") or of_rows == set(described["rows"]["items"]["properties"])
