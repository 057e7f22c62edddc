# SPDX-License-Identifier: BSD-3-Clause
"""`moscope mosbench`: the figures of the MOSBENCH paper in one command (contracts: moscope.mosbench/1)."""

from typing import Annotated

import typer

from moscope.cli import Shared, command


@command(fills_out=True)
def mosbench(shared: Shared,
             workload: Annotated[str | None, typer.Option(metavar="NAME,..",
                                                          help="Applications of the paper, such as exim,gmake. Default: all that "
                                                               "moscope has.")] = None,
             cores: Annotated[str | None, typer.Option(metavar="LIST", help="Core counts. Default: 1, 4 and the multiples of 6 up to "
                                                                            "48, or up to all cores.")] = None,
             quick: Annotated[bool, typer.Option("--quick", help="Measure only 1, 12 and 48 cores, in at most 24 short windows, until "
                                                                 "the standard error of throughput is below 10%.")] = False,
             windows: Annotated[int | None, typer.Option(metavar="N", help="Number of windows of each point, as for `run`.")] = None,
             until_error: Annotated[str | None, typer.Option(metavar="P", help="Measure windows until the standard error of throughput "
                                                                               "is below P, as for `run`.")] = None,
             threads: Annotated[int | None, typer.Option(metavar="N", help="Host threads per point. Default: 1.")] = None,
             dry_run: Annotated[bool, typer.Option("--dry-run", help="Only print the number of points and the estimated time.")] = False,
             executor: Annotated[str, typer.Option(metavar="local|slurm", help="Where the points run.")] = "local",
             jobs: Annotated[int | None, typer.Option(metavar="N",
                                                      help="Number of points to run at a time. Default: one per "
                                                           "processor.")] = None) -> int:
    """Run the applications of the MOSBENCH paper, and draw its figures beside the paper's results.

    Measures each application on stock and patched Linux. Repeat the command to
    resume it. Finished points are kept, even if you add core counts.
    """
    from moscope.mosbench import main, show
    from moscope.sweeps import display

    wanted = main.Wanted(workload, cores, windows, until_error, threads, quick)
    with display.Bar(shared) as bar:
        document, outcome = main.run(shared, wanted, say=bar.say, progress=bar.show, executor=executor, at_once=jobs, dry_run=dry_run)
    show.show(document, outcome, shared)
    return outcome.exit_code
