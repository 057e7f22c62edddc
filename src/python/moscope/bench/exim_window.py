# SPDX-License-Identifier: BSD-3-Clause
"""A measurement window of exim on all 48 cores, for `bench instructions`.

`prepare` boots the machine and starts the workload, which takes minutes under valgrind and seconds without it. The
counted process (`python -m moscope.bench.exim_window REQUEST`) continues from a checkpoint of that moment with the
warm-up and the window, one engine call each. A third call ends the window's part of the profile. Everything runs on
one host thread and with attribution.
"""

import json
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from moscope.bench.point import as_recorded
from moscope.cli import Shared
from moscope.config import load_machine
from moscope.runs import checkpoints, engine, lines, options, point
from moscope.runs.guest import Guest, done
from moscope.runs.inputs import Gatherer
from moscope.schema.constants import FS_PER_US

TITLE, UNIT = "window of exim on 48 cores", "guest instruction"
WORKLOAD, KERNEL, CORES = "exim", "distro", "48"
WARMUP_US, WINDOW_US = 300, 200
# The counted process makes this engine call three times; the second is the window.
ENTRIES, PARTS, PART = ("moscope::FullSystem::step_until*",), 3, 1
GUEST = ("kernel", "programs")  # inputs with which windows of the same machine differ
LONGEST_MS = 10**9  # of host time for an engine call: longer than any window takes


@dataclass(frozen=True)
class Begin:
    """A machine at the start of detailed mode: what the counted process needs, as text."""

    config: dict[str, Any]
    checkpoint: str
    pages: dict[str, Any] | None
    guest: dict[str, str]
    warmup: int
    window: int

    def text(self) -> str:
        return json.dumps(vars(self))


def prepare(shared: Shared, folder: Path, scale: float = 1.0) -> Begin:
    """Boots (or takes the cached boot), runs to the workload's steady state and writes the checkpoint into `folder`."""
    plan = options.make(as_recorded(shared), options.Options(workload=WORKLOAD, kernel=KERNEL, cores=CORES))
    one = plan.points[0]
    inputs = Gatherer(load_machine(plan.machine_option, plan.sets), plan.programs, shared.say).of(one)
    chosen = inputs.kernel
    append = " ".join(part for part in (options.APPEND, chosen.append) if part)
    config = checkpoints.configuration(inputs, append, one.cores, plan.seed)
    timed = {**inputs.detailed, "transactions": "", "attribution": True}
    start, system = checkpoints.restored(lambda: checkpoints.at_prompt(config, chosen, lambda progress: None),
                                         lambda start: engine.create({**start.config, "detailed": timed}))
    began = {**start.config, "detailed": timed}
    point.begin(Guest(system, lambda progress: None, start.console), one)
    checkpoint = folder / "begin.ckpt"
    system.save(str(checkpoint))
    pages = lines.namer(system, chosen, plan.programs).page_format()
    guest = {name: digest for name, digest in inputs.digests().items() if name in GUEST}
    return Begin(began, str(checkpoint), pages, guest, *(round(us * scale * FS_PER_US) for us in (WARMUP_US, WINDOW_US)))


def main(text: str) -> None:
    request = Begin(**json.loads(text))
    system = engine.create(request.config)
    system.restore(request.checkpoint)
    if request.pages:
        system.watch_pages(json.dumps(request.pages))
    begun = int(system.counts()["ticks"])
    system.enter_detailed()
    system.step_until(begun + request.warmup, LONGEST_MS)
    before = system.counts()
    answer = system.step_until(begun + request.warmup + request.window, LONGEST_MS)
    after = system.counts()
    print(json.dumps({"state": answer["state"], "units": done(after) - done(before), "spun": after["spun"] - before["spun"]}), flush=True)
    system.step_until(begun + request.warmup + request.window, 0)
    os._exit(0)  # leaves out the machine's destructors, which belong to no part


if __name__ == "__main__":
    main(sys.argv[1])
