# SPDX-License-Identifier: BSD-3-Clause
"""`moscope run` with several values of a `--set` is a sweep: workloads, kernels and core counts then also become axes."""

import shlex
from collections.abc import Iterable
from dataclasses import fields, replace
from typing import Any

from moscope.cli import Shared
from moscope.runs import options
from moscope.runs.options import Options
from moscope.sweeps import overrides
from moscope.sweeps.jobs.run import parameter
from moscope.sweeps.spec import Spec, Value

AXES = ("workload", "kernel", "cores")


def spec(shared: Shared, given: Options) -> Spec | None:
    """The sweep that the options of a run describe; None if each `--set` has a single value."""
    single, several = overrides.split(shared.machine, shared.sets)
    if not several:
        return None
    firsts = [f"{key}={values[0]}" for key, values in (single | several).items()]
    points = options.make(replace(shared, sets=firsts), given).points
    asked = {} if given.program else _asked(given)
    axes: dict[str, list[Value]] = {} if given.program else {"workload": _distinct(asked[p.workload] for p in points)}
    axes |= {"kernel": _distinct(p.kernel for p in points), "cores": _distinct(p.cores for p in points)}
    own = {parameter(f.name): shlex.join(value) if isinstance(value, tuple) else value for f in fields(given)
           if f.name not in AXES and (value := getattr(given, f.name)) != f.default}
    fixed: dict[str, Any] = {"machine": shared.machine, "seed": shared.seed, **own, **{k: v[0] for k, v in single.items()},
                             **{name: values[0] for name, values in axes.items() if len(values) == 1}}
    exclude: list[dict[str, list[Value]]] = []
    for name, text in asked.items():  # default core counts and kernels depend on the workload
        for axis in ("cores", "kernel"):
            mine = {getattr(p, axis) for p in points if p.workload == name}
            if lacking := [value for value in axes[axis] if value not in mine]:
                exclude.append({"workload": [text], axis: lacking})
    return Spec("run", fixed, {**{n: v for n, v in axes.items() if len(v) > 1}, **several}, [], exclude, "run", "moscope run")


def _asked(given: Options) -> dict[str, str]:
    """The texts by which the user names the workloads, by name: the processes of points find a workload elsewhere by its folder."""
    from moscope import workloads

    texts = options.names("--workload", given.workload) if given.workload else [options.DEFAULT_WORKLOAD]
    return {workloads.find(text).name: text for text in texts}


def _distinct(values: Iterable[Any]) -> list[Value]:
    return list(dict.fromkeys(values))
