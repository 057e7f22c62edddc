# SPDX-License-Identifier: BSD-3-Clause
"""Ends programs that have started others: all processes of their group get the signals."""

import os
import signal
import subprocess
from contextlib import suppress
from typing import Any


def end(leader: "subprocess.Popen[Any]", sign: signal.Signals, grace_s: float) -> None:
    """Sends `sign` to the group of a process started with `start_new_session`, and SIGKILL if the process has not ended after
    `grace_s` seconds. Its output is read meanwhile, so that a full pipe does not stop it."""
    for number, grace in ((sign, grace_s), (signal.SIGKILL, None)):
        with suppress(ProcessLookupError):
            os.killpg(leader.pid, number)
        try:
            leader.communicate(timeout=grace)
            return
        except subprocess.TimeoutExpired:
            continue
