# SPDX-License-Identifier: BSD-3-Clause
"""Which signals interrupt a command. Standard library only, because the launcher uses it."""

import os
import signal
from typing import Any


def hear() -> None:
    """Treats SIGTERM and a hang-up of the terminal as interruptions, so that unfinished files and folders are removed, and
    programs that the command has started end."""
    terminals = [fd for fd in (1, 2) if os.isatty(fd)]

    def hung_up(*_: Any) -> None:
        for fd in terminals:  # printing to a terminal that is gone would be another error
            os.dup2(os.open(os.devnull, os.O_WRONLY), fd)
        raise KeyboardInterrupt

    signal.signal(signal.SIGTERM, signal.default_int_handler)
    if signal.getsignal(signal.SIGHUP) != signal.SIG_IGN:  # nohup ignores the signal
        signal.signal(signal.SIGHUP, hung_up)
