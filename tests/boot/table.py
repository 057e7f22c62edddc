# SPDX-License-Identifier: BSD-3-Clause
"""The boots that the tests make: cores, script, limit, what the console has to show, in order."""

from dataclasses import dataclass
from pathlib import Path

from findings import ALL, Check

GUEST = Path(__file__).parent / "guest"

@dataclass(frozen=True)
class Boot:
    """One boot. `shows` are regular expressions for whole lines, in this order; `long`: only with --long."""

    name: str
    cores: int
    script: str
    timeout_s: int
    shows: tuple[str, ...] = ()
    checks: tuple[Check, ...] = ()
    programs: tuple[str, ...] = ()  # C sources under guest/, built static and put beside the script
    needs_root: bool = False  # the Debian root image on the disk
    memory_per_node: str = "512MiB"
    long: bool = False

    @property
    def script_path(self) -> Path:
        return GUEST / self.script

def linux(cores: int, long: bool) -> Boot:
    return Boot(f"linux on {cores}", cores, "linux.sh", 300 + 30 * cores, checks=tuple(ALL), long=long)

# Answers of guest/compute.sh, from a host.
COMPUTED = (
    "md5 e071f707df7bbeee2a6a1eb48011ddd0",
    "sha f6351f5ead9a700e34275480b3856ea738122a7c57bdeb744a631251c069587a",
    "sum 200010000", r"thirds 2\.726122701203", "gzip right", "20000 19999 19998 ", "numbers",
    "processes 100", "end",
)
ORDERED = ("MP: 0 of .*", r"SB: .* \(allowed\)", r"SB\+mfence: 0 of .*", r"SB\+locked: 0 of .*", "LB: 0 of .*", "CoRR: 0 of .*",
           "IRIW: 0 of .*", "locked: .*: right", "litmus: right")
USER_SPACE = ("gcc right", "perl right", "python3 right", "tar and xz right", "48 threads right", "stress-ng right", "end")

BOOTS = (
    *(linux(n, long=n != 6) for n in (1, 2, 6, 12, 24, 48)),
    Boot("compute", 1, "compute.sh", 300, COMPUTED, long=True),  # test_model runs it twice for other claims
    Boot("litmus", 6, "litmus.sh", 400, ORDERED, programs=("litmus",)),
    Boot("litmus on 48", 48, "litmus.sh", 2400, ORDERED, programs=("litmus",), long=True),
    Boot("user space", 48, "userspace.sh", 7200, USER_SPACE, needs_root=True, long=True),
)
