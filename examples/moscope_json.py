# SPDX-License-Identifier: BSD-3-Clause
"""What the examples share: run a command of moscope and return its JSON object."""

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

LAUNCHER = Path(__file__).resolve().parents[1] / "moscope"


def moscope(*words: str) -> dict[str, Any]:
    """`moscope("latency", "--machine", "small")` returns the object that `./moscope latency --machine small --json` prints.

    A check that finds a violation ends with 1 (a hang with 3), and prints its object too. Any other exit code but 0 is an error.
    """
    with tempfile.TemporaryDirectory() as folder:
        out = [] if "--out" in words else ["--out", folder]
        got = subprocess.run([str(LAUNCHER), *words, *out, "--json", "--quiet"], capture_output=True, text=True, check=False)
    if got.returncode not in (0, 1, 3) or not got.stdout:
        sys.stderr.write(got.stderr)
        raise SystemExit(got.returncode)
    document: dict[str, Any] = json.loads(got.stdout)
    return document
