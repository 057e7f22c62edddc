# SPDX-License-Identifier: BSD-3-Clause
"""The machine and the accesses of a spec."""

import json

from moscope import buildproto
from moscope.cli import Shared
from moscope.config import cores_together, load_machine, with_cores
from moscope.experiment import Subject, prepare
from moscope.stepping.spec import Spec
from moscope.traces.document import has_delays
from moscope.traces.script import ScriptAccess, parse


def prepared(spec: Spec, quiet: bool = True) -> tuple[Subject, list[list[ScriptAccess]]]:
    """The machine and the accesses. UserError for a mistake in the script, before anything is built."""
    machine = load_machine(spec.machine, spec.all_sets)
    shared = Shared(machine=spec.machine, sets=spec.all_sets, seed=spec.seed, quiet=quiet)
    if spec.cores is not None:
        built = buildproto.ensure_protocol(str(machine.protocol), report=shared.say)
        together = cores_together(json.loads(built.interface.read_text(encoding="utf-8")))
        machine = with_cores(machine, spec.cores, together)
    steps = parse(spec.script, machine)
    subject = prepare(shared, machine, checking=spec.checked, delays=has_delays(steps), caches=spec.caches, homes=spec.homes)
    return subject, steps
