# SPDX-License-Identifier: BSD-3-Clause
"""From Python, a broken protocol is a result: its violations, the path to one, and a script that repeats it."""

import shutil
from pathlib import Path

import mutations_verify
from mutations import ALL

import moscope as package
from moscope import buildproto


def broken(name: str, folder: Path) -> Path:
    for path in buildproto.known_protocols()["MSI"].parent.glob("MSI*"):
        shutil.copy(path, folder)
    next(m for m in (*ALL, *mutations_verify.ALL) if m.name == name).apply(folder)
    return folder / "MSI.slicc"


def test_a_failed_check_has_its_violations_and_a_script(tmp_path: Path) -> None:
    file = tmp_path / "c.toml"
    found = package.check(broken("msi-wrong-next-state", tmp_path), cores=8, caches="tiny", ops=20_000, counterexample=file, progress=False)
    assert not found.ok and found.violations and found.document["counterexample"]["file"] == str(file)
    assert found.violations[0].splitlines()[0] in found._repr_html_()
    replayed = package.trace(str(file)).document
    assert replayed["violations"] or replayed["protocol_error"]


def test_a_failed_verification_has_the_path_to_its_violation(tmp_path: Path) -> None:
    found = package.verify(broken("msi-late-put-writes", tmp_path), progress=False)
    assert not found.ok and found.violation and found.steps[-1]["transitions"]
    assert found.document["counterexample"] is None and found.violation in found._repr_html_()
