# SPDX-License-Identifier: BSD-3-Clause
"""Ends programs that have started others: all processes of their group get the signals."""

import os
import signal
import subprocess
import time
from contextlib import suppress
from typing import Any


def end(leader: "subprocess.Popen[Any]", sign: signal.Signals, grace_s: float) -> None:
    """Sends `sign` to the group of a process started with `start_new_session`, and SIGKILL if the process has not ended after
    `grace_s` seconds. Its output is read meanwhile, so that a full pipe does not stop it. Interruptions meanwhile change nothing, as
    the group would outlive its caller: a terminal that closes sends SIGHUP twice."""
    deadline = time.monotonic() + grace_s
    for number, until in ((sign, deadline), (signal.SIGKILL, None)):
        with suppress(ProcessLookupError):
            os.killpg(leader.pid, number)
        while True:
            try:
                leader.communicate(timeout=None if until is None else max(0.0, until - time.monotonic()))
                return
            except KeyboardInterrupt:
                continue
            except subprocess.TimeoutExpired:
                break
