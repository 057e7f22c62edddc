# SPDX-License-Identifier: BSD-3-Clause
"""`moscope workload build`: the program of a workload, which runs on any Linux."""

from typing import Annotated

import typer

from moscope.cli import SIMULATED, Shared, command


@command(unused=SIMULATED)
def build(shared: Shared, workload: Annotated[str, typer.Argument(metavar="NAME|DIR", help="Name or folder of a workload.")]) -> None:
    """Build the program of a workload, or find it in the cache, and print its path."""
    from moscope import workloads

    w = workloads.find(workload)
    (program,) = workloads.programs({w.family}, shared.say).values()
    shared.result({"schema": "moscope.workload.build/1", "name": w.name, "family": w.family, "program": str(program)})
    if not shared.json:
        print(program)
