# SPDX-License-Identifier: BSD-3-Clause
"""Runs a module of analysis in a separate process, because analysis reads only the folder of the results."""

import subprocess
import sys
from pathlib import Path

from moscope import paths
from moscope.errors import UserError
from moscope.failures import killed

CODE = "import sys, importlib; sys.path.insert(0, sys.argv[1]); sys.exit(importlib.import_module(sys.argv[2]).main(sys.argv[3:]))"


def made_by(module: str, words: list[str], root: Path) -> str:
    """Runs `main(words)` of a module of analysis, which makes a report of the folder `root`; returns its output. UserError also for a
    process that a signal from outside has ended."""
    got = subprocess.run([sys.executable, "-P", "-c", CODE, str(paths.root()), module, *words], capture_output=True, text=True, check=False)
    said = got.stderr.strip()
    if got.returncode == UserError.exit_code:
        raise UserError(said)
    if error := killed("the process that writes the report", got.returncode):
        raise error
    if got.returncode != 0:
        why = said.splitlines()[-1] if said else "no reason given"
        bug = RuntimeError(f"the report could not be written (the results are in {root}): {why}")
        bug.add_note(said)
        raise bug
    return got.stdout
