# SPDX-License-Identifier: BSD-3-Clause
"""`moscope ablate`: each fix of the kernel by itself."""

from typing import Annotated

import typer

from moscope.cli import Shared, command


@command(fills_out=True)
def ablate(shared: Shared,
           workload: Annotated[str, typer.Option(metavar="NAME", help="What the guest runs.")] = "exim",
           cores: Annotated[int, typer.Option(metavar="N", help="Cores in use.")] = 48,
           fixes: Annotated[str | None, typer.Option(metavar="LIST", help="Fixes to switch: 2,7; all if not given.")] = None,
           warmup: Annotated[str | None, typer.Option(metavar="T", help="As of `moscope run`.")] = None,
           window: Annotated[str | None, typer.Option(metavar="T", help="As of `moscope run`.")] = None,
           windows: Annotated[int | None, typer.Option(metavar="N", help="As of `moscope run`.")] = None) -> int:
    """Switch each fix on alone over the stock kernel, and off alone from the patched one.

    Measures `stock`, `stock+N` for each fix, `pk-N` for each fix, and `pk`, as `moscope run` does with these kernels: an
    interrupted run goes on with the same options and --out.
    """
    import sys

    from moscope.run import ablate as job
    from moscope.run import main, options

    plan = job.plan(shared, options.Options(workload=workload, cores=str(cores), warmup=warmup, window=window, windows=windows), fixes)
    outcome = main.run(plan, shared)
    document = job.document(plan, outcome.document)
    if shared.json:
        shared.result(document)
    else:
        job.show(document)
    for error in outcome.failed:
        print(error.report(), file=sys.stderr)
    return outcome.exit_code
