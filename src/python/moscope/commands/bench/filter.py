# SPDX-License-Identifier: BSD-3-Clause
"""`moscope bench filter`: the cost of a probe filter when all cached data are homed on one node."""

from typing import Annotated

import typer

from moscope.cli import Shared, command
from moscope.errors import UserError


@command
def filter_(shared: Shared,
            bytes_: Annotated[str | None, typer.Option("--bytes", metavar="SIZE",
                                                       help="Size of the working set, such as 70MiB. Default: the total "
                                                            "capacity of all caches except instruction caches.")] = None,
            accesses: Annotated[int, typer.Option(metavar="N",
                                                  help="Approximate number of measured accesses, summed over all cores.")] = 1_000_000,
            ) -> None:
    """Compare data homed on one node with data spread evenly: filter entries replaced, lines lost, slowdown."""
    from moscope.bench import filter as bench_filter
    from moscope.config import apply_sets, bytes_of
    from moscope.experiment import prepare

    if accesses < 1000:
        raise UserError(f"--accesses: {accesses}: expected 1000 or more")
    total = None if bytes_ is None else bytes_of("--bytes", bytes_)
    subject = prepare(shared)
    without = prepare(shared, apply_sets(subject.machine, ["probe_filter.enabled=false"]))
    document = bench_filter.compare(subject, without, total, accesses, shared.say)
    shared.result(document)
    if shared.json:
        return
    bench_filter.print_placements(document)
