# SPDX-License-Identifier: BSD-3-Clause
"""From axes to the parameters of each point: the product of all axes without the exclusions. Zipped axes count as one axis."""

from itertools import product

from moscope.errors import UserError, unknown_name
from moscope.sweeps.spec import Params, Spec, Value, meaning

MOST_POINTS = 100_000


def points(spec: Spec) -> list[Params]:
    """The parameters of all points, in the order of the file: the last axis varies fastest. UserError if there are no points, or
    too many."""
    groups = _groups(spec)
    count = 1
    for group in groups:
        count *= len(group)
    if count > MOST_POINTS:
        raise UserError(f"{spec.where}: {count:,} points: expected at most {MOST_POINTS:,}")
    for entry in spec.exclude:
        for name in entry:
            if name not in spec.names():
                raise unknown_name(f"{spec.where}: exclude", "parameter", name, spec.names())
    found = []
    for parts in product(*groups):
        params = dict(spec.fixed)
        for part in parts:
            params.update(part)
        if not any(_matches(params, entry) for entry in spec.exclude):
            found.append(params)
    if not found:
        raise UserError(f"{spec.where}: exclude: leaves no point: expected exclusions that match only some points")
    return found


def _groups(spec: Spec) -> list[list[Params]]:
    """For each axis, or group of zipped axes, the parameters that it sets at each step."""
    groups: list[list[Params]] = []
    placed: set[str] = set()
    for name, values in spec.axes.items():
        if name in placed:
            continue
        together = next((z for z in spec.zips if name in z), [name])
        placed.update(together)
        groups.append([{n: spec.axes[n][i] for n in together} for i in range(len(values))])
    return groups


def _matches(params: Params, entry: dict[str, list[Value]]) -> bool:
    return all(meaning(params[name]) in map(meaning, values) for name, values in entry.items())
