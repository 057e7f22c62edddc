# SPDX-License-Identifier: BSD-3-Clause
"""`moscope ablate`: measures each kernel fix alone."""

from typing import Annotated

import typer

from moscope.cli import Shared, command


@command(fills_out=True)
def ablate(shared: Shared,
           workload: Annotated[str, typer.Option(metavar="NAME", help="Workload.")] = "exim",
           cores: Annotated[int | None, typer.Option(metavar="N",
                                                     help="Number of cores in use. Default: all cores of the machine.")] = None,
           fixes: Annotated[str | None, typer.Option(metavar="LIST", help="Fixes to measure, such as 2,7. Default: all.")] = None,
           warmup: Annotated[str | None, typer.Option(metavar="T", help="As in `moscope run`.")] = None,
           window: Annotated[str | None, typer.Option(metavar="T", help="As in `moscope run`.")] = None,
           windows: Annotated[int | None, typer.Option(metavar="N", help="As in `moscope run`.")] = None,
           until_error: Annotated[str | None, typer.Option(metavar="P", help="As in `moscope run`.")] = None,
           memory_per_node: Annotated[str | None, typer.Option(metavar="SIZE", help="As in `moscope run`.")] = None,
           detail: Annotated[str, typer.Option(metavar="table|full", help="As in `moscope run`.")] = "table",
           threads: Annotated[int | None, typer.Option(metavar="N", help="As in `moscope run`.")] = None,
           dry_run: Annotated[bool, typer.Option("--dry-run",
                                                 help="Only print the number of points and the estimated time.")] = False) -> int:
    """Measure each kernel fix alone: added to the stock kernel, and removed from the patched one.

    Measures `stock`, `stock+N` and `pk-N` for each fix, and `pk`, in the same way
    as `moscope run`. Repeat the command with the same options and --out to resume
    an interrupted run.
    """
    import sys

    from moscope.config import load_machine
    from moscope.runs import ablate as job
    from moscope.runs import directory, main, options

    count = load_machine(shared.machine, shared.sets).cores if cores is None else cores
    given = options.Options(workload=workload, cores=str(count), warmup=warmup, window=window, windows=windows, until_error=until_error,
                            memory_per_node=memory_per_node, detail=detail, threads=threads)
    plan = job.plan(shared, given, fixes, build=not dry_run)
    if dry_run:
        found, said = job.forecast(plan)
        if shared.json:
            shared.result(found)
        else:
            print(said)
        return 0
    before = directory.kept(plan)
    outcome = main.run(plan, shared)
    job.record_times(plan, before, outcome.document)
    document = job.document(plan, outcome.document)
    if shared.json:
        shared.result(document)
    else:
        job.show(document)
    for error in outcome.failed:
        print(error.report(), file=sys.stderr)
    return outcome.exit_code
