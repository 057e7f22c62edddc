# SPDX-License-Identifier: BSD-3-Clause
"""Builds a spec from the options of `moscope step`."""

import os
from dataclasses import replace
from pathlib import Path

from moscope.cli import Shared
from moscope.errors import UserError
from moscope.stepping import examples
from moscope.stepping.examples import Example
from moscope.stepping.spec import Spec


def check_run(shared: Shared, script: str | None, example: str | None, protocol: str | None) -> None:
    """Refuses options that an episode of a run cannot have: the machine, protocol and seed are those of the run."""
    for option, given in (("a script", script is not None), ("--example", example is not None), ("--protocol", protocol is not None),
                          ("--set", bool(shared.sets)), ("--machine", "machine" in shared.given), ("--seed", "seed" in shared.given)):
        if given:
            raise UserError(f"moscope step: --run and {option}: both are given: expected one of the two")


def chosen(shared: Shared, script: str | None, example: str | None, protocol: str | None,
           line: str | None = None) -> tuple[Spec, Example | None]:
    """The spec of a script or of an example, with the options that the user gives."""
    if line is not None:
        raise UserError(f"--line: {line}: applies only to a run: expected --run DIR, too")
    if (script is None) == (example is None):
        raise UserError(f"moscope step: {'a script and' if script else 'no script and no'} --example: expected one of the two, such as "
                        "'c0 ld A@n0; c6 st A@n0' or --example " + examples.names()[0])
    shown = examples.load(example) if example is not None else None
    if script is not None and examples.is_file(script):
        shown = examples.read(Path(script))
    elif script is not None and os.path.exists(script):
        raise UserError(f"{script}: is not a script file: expected a file whose name ends in .toml, or accesses such as c0 ld A@n0")
    spec = shown.spec if shown else Spec(script or "", shared.machine)
    if "machine" in shared.given:
        spec = replace(spec, machine=shared.machine)
    if "seed" in shared.given or shown is None:
        spec = replace(spec, seed=shared.seed)
    if any(text.partition("=")[0].strip() == "protocol" for text in shared.sets):
        if protocol is not None:
            raise UserError(f"--protocol {protocol} and --set protocol: both are given: expected one of the two")
        spec = replace(spec, protocol=None)  # the option replaces the file's
    return replace(spec, protocol=protocol or spec.protocol, sets=(*spec.sets, *shared.sets)), shown
