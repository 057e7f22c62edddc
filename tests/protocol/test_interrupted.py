# SPDX-License-Identifier: BSD-3-Clause
"""A check that is interrupted answers what it has tested."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from moscope import paths
from moscope.cli import Shared
from moscope.errors import UserError
from moscope.protocol.testing import without_script


@pytest.mark.parametrize("error", [KeyboardInterrupt(), UserError("c.toml: Permission denied: expected a writable file")])
def test_a_failed_check_keeps_its_answer_if_its_script_cannot_be_made(error: BaseException) -> None:
    def fails() -> int:
        raise error

    shared = Shared(quiet=True)
    assert without_script(shared, fails) is None and without_script(shared, lambda: 7) == 7


def test_ctrl_c_ends_a_check_with_what_it_has(tmp_path: Path) -> None:
    env = {**os.environ, "PYTHONPATH": str(paths.root() / "src" / "python")}
    check = "from moscope.protocol import check\nprint('ready', flush=True)\nreal = check.random_test\n"
    # The first time that the engine reports progress, the process gets the signal that Ctrl-C sends.
    check += ("def counted(*a, progress, **k):\n    def show(done):\n        os.kill(os.getpid(), signal.SIGINT)\n"
              "        return progress(done)\n    return real(*a, progress=show, **k)\ncheck.random_test = counted\n")
    check += "from moscope.cli import main\nsys.exit(main(sys.argv[1:]))\n"
    got = subprocess.run([sys.executable, "-P", "-c", "import os, signal, sys\n" + check, "protocol", "check", "MSI", "--cores", "4",
                          "--ops", "100000000", "--json"], capture_output=True, text=True, timeout=120, cwd=tmp_path, env=env, check=False)
    assert got.returncode == 128 + signal.SIGINT, got.stderr
    document = json.loads(got.stdout.removeprefix("ready\n"))
    assert document["stopped"] and document["ok"] and 0 < document["ops"] < 100_000_000 and document["checked_loads"] > 0
