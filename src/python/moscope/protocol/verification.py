# SPDX-License-Identifier: BSD-3-Clause
"""An exploration from its options to its document, with a script that repeats a violation: `moscope protocol verify` and
`moscope.verify`."""

import os
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from moscope.cli import Shared
from moscope.config import bytes_of
from moscope.errors import UserError, unknown_name
from moscope.protocol import check, verify, verify_script
from moscope.protocol.counterexample.write import Origin
from moscope.protocol.testing import anywhere, machine_anywhere, without_script
from moscope.protocol.verify import Bounds
from moscope.traces.files import check_target

MAX_THREADS = 64


@dataclass(frozen=True)
class Asked:
    """What is explored, as the options of `protocol verify` have it. `threads`: 0 for one per processor. `counterexample`: file for the
    script that repeats a violation (None: PROTOCOL.counterexample.toml); `shrink`: seconds for shortening it, 0 for no script."""

    protocol: str
    bounds: Bounds
    memory: str = "8GiB"
    seconds: int = 3600
    threads: int = 0
    counterexample: Path | None = None
    shrink: int = 20

    @property
    def file(self) -> Path:
        return self.counterexample or Path(f"{Path(self.protocol).stem}.counterexample.toml")

    def check(self) -> None:
        """Raises UserError for values that are not accepted."""
        for option, names, known in (("--requests", self.bounds.requests, tuple(verify.REQUESTS)),
                                     ("--device", self.bounds.device, verify.DEVICE)):
            for name in names:
                if name not in known:
                    raise unknown_name(option, "kind of request", name, list(known))
        check.check_shrinking("--shrink", self.shrink)
        if not self.bounds.requests:
            raise UserError(f"--requests: nothing: expected some of {', '.join(verify.REQUESTS)}")
        if self.seconds < 1:
            raise UserError(f"--seconds: {self.seconds}: expected 1 or more")
        if not 0 <= self.threads <= MAX_THREADS:
            raise UserError(f"--threads: {self.threads}: expected 0 to {MAX_THREADS}")
        self.bounds.check()
        check_target(self.counterexample, ".toml")


def run(shared: Shared, asked: Asked) -> dict[str, Any]:
    """moscope.verify/1. UserError before anything runs."""
    asked.check()
    report = cache(shared.say)  # so that a replay does not repeat the protocol's warnings
    answer = verify.verified(asked.protocol, shared.machine, shared.sets, asked.bounds, bytes_of("--memory", asked.memory), asked.seconds,
                             asked.threads or min(os.cpu_count() or 1, MAX_THREADS), report, shared.quiet)
    script = None
    if "violation" in answer and asked.shrink:
        script = without_script(shared, lambda: _script(shared, asked, answer["steps"], report))
    return verify.document(Path(asked.protocol).stem, asked.bounds, answer, str(script.file) if script else None,
                           script.names if script else ())


def _script(shared: Shared, asked: Asked, steps: list[dict[str, Any]], report: verify.Report) -> verify_script.Script | None:
    """The script that repeats a violation on the engine, if there is one."""
    report("replaying the violation on the engine")
    bounds, sets = asked.bounds, [*shared.sets, *verify.shape(asked.bounds)]
    subject = check.prepare(asked.protocol, shared.machine, sets, homes=bounds.homes, report=report)
    origin = Origin(anywhere(asked.protocol), machine_anywhere(shared.machine), tuple(sets), bounds.caches, "tiny", bounds.homes)
    return verify_script.counterexample(steps, subject, origin, asked.file, asked.shrink)
