# SPDX-License-Identifier: BSD-3-Clause
"""Stand-ins for gem5 that say what a test wants, and the real one where GEM5 names it."""

import json
import os
import stat
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

FAKE = """#!{python}
import json, os, shutil, sys
from pathlib import Path
answers = json.loads({answers!r})
if sys.argv[-1].endswith("tell.py"):
    print("moscope-gem5: is: " + json.dumps(answers["is"]))
    sys.exit(0)
folder = Path(next(a for a in sys.argv if a.startswith("--outdir=")).partition("=")[2])
(folder / "arguments.json").write_text(json.dumps(sys.argv[1:]))
for name in Path(answers["files"]).iterdir() if answers["files"] else []:
    shutil.copy(name, folder / name.name)
print(answers["says"], flush=True)
if answers["code"] < 0:
    os.kill(os.getpid(), -answers["code"])
sys.exit(answers["code"])
"""

Fake = Callable[..., Path]


@pytest.fixture
def fake_gem5(tmp_path: Path) -> Fake:
    """Writes a program that says what it is and, asked to run a script, leaves `files` (a folder's) in the output
    folder, says something and ends: by a signal if `code` is negative."""

    def write(*, version: str = "24.0.0.1", protocol: str = "MOESI_HTAssist", x86: bool = False, says: str = "moscope-gem5: "
              "ended: the script is at its end: 1.5 s", code: int = 0, files: Path | None = None) -> Path:
        path = tmp_path / "gem5.opt"
        answers = json.dumps({"is": {"version": version, "protocol": protocol, "x86": x86}, "says": says, "code": code,
                           "files": str(files) if files else ""})
        path.write_text(FAKE.format(python=sys.executable, answers=answers))
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
        return path

    return write


@pytest.fixture(scope="session")
def gem5() -> Path:
    """The gem5 that the user brings; without one the tests that need it are skipped."""
    name = os.environ.get("GEM5")
    if not name:
        pytest.skip("needs gem5: the environment variable GEM5 names none")
    return Path(name)
