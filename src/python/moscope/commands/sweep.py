# SPDX-License-Identifier: BSD-3-Clause
"""`moscope sweep`: many points along axes, resumable, on this machine or a cluster (contracts: moscope.sweep/1)."""

from pathlib import Path
from typing import Annotated

import typer

from moscope.cli import Shared, command


@command(fills_out=True)
def sweep(shared: Shared,
          file: Annotated[Path, typer.Argument(metavar="FILE", help="Sweep file, in TOML (docs/sweeps.md).")],
          dry_run: Annotated[bool, typer.Option("--dry-run", help="Only print the number of points and the estimated time.")] = False,
          executor: Annotated[str, typer.Option(metavar="local|slurm", help="Where the points run.")] = "local",
          jobs: Annotated[int | None, typer.Option(metavar="N",
                                                   help="Number of points to run at a time. Default: one per processor.")] = None,
          plot: Annotated[list[str], typer.Option(metavar="EXPR",
                                                  help="Also draw this plot, such as 'throughput ~ links.clock | kernel'. Repeat the "
                                                       "command for another plot.")] = []) -> int:  # noqa: B006
    """Run many points along axes, and collect their figures in one table and a report.

    Prints the number of points first. Repeat the command to resume an interrupted
    sweep. Finished points are kept, even if you add values to an axis.
    """
    from moscope.errors import UserError
    from moscope.sweeps import display, overrides, spec

    if len(plot) > 1:
        raise UserError(f"--plot: is given {len(plot)} times: expected one plot; the same command with another --plot draws the next")
    described = overrides.apply(spec.read(file), shared)
    return display.run(described, shared, executor=executor, at_once=jobs, dry_run=dry_run, plot=plot[0] if plot else None)
