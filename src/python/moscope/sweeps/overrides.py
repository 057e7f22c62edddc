# SPDX-License-Identifier: BSD-3-Clause
"""Options in addition to a sweep file, or in place of one: `--set KEY=V1,V2` is an axis, `--set KEY=V` a fixed parameter."""

import re
from dataclasses import replace
from pathlib import Path

from moscope.cli import Shared
from moscope.config import Machine, load_machine
from moscope.config.keys import OPEN
from moscope.config.load import with_sets
from moscope.errors import UserError
from moscope.sweeps import jobs
from moscope.sweeps import spec as specs
from moscope.sweeps.jobs.base import SHARED
from moscope.sweeps.spec import Params, Spec, Value


def apply(spec: Spec, shared: Shared) -> Spec:
    """The sweep with the shared options that were given; they replace what the file says of the same parameter."""
    fixed: Params = {}
    if "machine" in shared.given:
        fixed["machine"] = shared.machine
    if "seed" in shared.given:
        fixed["seed"] = shared.seed
    machine = specs.text(fixed.get("machine", spec.axes.get("machine", [spec.fixed.get("machine", shared.machine)])[0]))
    single, several = split(machine, shared.sets)
    # The job's own parameters, for which a sweep file has numbers and truth values.
    plain = {*jobs.find(spec.job, f"{spec.where}: job").options, *SHARED}
    single, several = ({key: [as_in_a_file(v) if key in plain else v for v in values] for key, values in found.items()}
                       for found in (single, several))
    fixed |= {key: value for key, (value,) in single.items()}
    check_zips(spec, {*fixed, *several})
    return replace(spec, fixed={**{k: v for k, v in spec.fixed.items() if k not in several}, **fixed},
                   axes={**{k: v for k, v in spec.axes.items() if k not in fixed}, **several})


def as_in_a_file(value: Value) -> Value:
    """The value as TOML has it: a number for `3`, a truth value for `true`."""
    if value in ("true", "false"):
        return value == "true"
    return int(value) if isinstance(value, str) and re.fullmatch(r"0|[1-9][0-9]{0,17}", value) else value


def check_zips(spec: Spec, given: set[str]) -> None:
    """Raises UserError for an option that replaces a zipped axis of the sweep."""
    for names in spec.zips:
        if clash := given & set(names):
            raise UserError(f"{spec.where}: {min(clash)}: is given as an option and zipped: expected one of the two")


def split(machine: str, sets: list[str]) -> tuple[dict[str, list[Value]], dict[str, list[Value]]]:
    """The values of each `--set` by key: those with one value, and those with several. The last `--set` of a key counts, as elsewhere."""
    found: dict[str, list[Value]] = {}
    base = load_machine(machine) if any("," in text for text in sets) else None
    for text in sets:
        key, equals, value = text.partition("=")
        if not equals or not key.strip():
            raise UserError(f"--set: {text!r:.40}: expected KEY=VALUE, such as dram.channels=1")
        found[key.strip()] = values_of(base, machine, key.strip(), value.strip())
    return {key: v for key, v in found.items() if len(v) == 1}, {key: v for key, v in found.items() if len(v) > 1}


def values_of(base: Machine | None, machine: str, key: str, text: str) -> list[Value]:
    """The values in a text: `1GHz,2.4GHz` are two. Commas within brackets do not separate values, nor do the commas of a text
    that is one valid value, such as the edges `0-1,1-2` of a topology."""
    parts = outside_brackets(text)
    if len(parts) == 1 or base is None:
        return [text]
    if not key.startswith(tuple(f"{o}." for o in OPEN)):
        try:
            with_sets(base, Path(machine), [f"{key}={text}"])
            return [text]
        except UserError:
            pass
    for part in parts:
        if not part:
            raise UserError(f"--set {key}={text}: has an empty value: expected values separated by single commas")
        if parts.count(part) > 1:
            raise UserError(f"--set {key}={text}: {part} appears twice: expected each value once")
    return list(parts)


def outside_brackets(text: str) -> list[str]:
    """The parts of a text, separated at commas outside brackets."""
    parts, depth = [""], 0
    for c in text:
        depth += (c in "([{") - (c in ")]}")
        if c == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += c
    return [p.strip() for p in parts]
