# SPDX-License-Identifier: BSD-3-Clause
"""The kernel side of a mail server: Exim as the MOSBENCH paper runs it, with two clients for each core (96 at 48)."""

from .registry import Workload, register

register(Workload("exim", "exim", "a mail server's processes, files and connections", "messages delivered",
                  lambda cores: f"--cores {cores}", warmup="1ms", window="2ms"))
