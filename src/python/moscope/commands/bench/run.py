# SPDX-License-Identifier: BSD-3-Clause
"""`moscope bench run`: the speed of detailed mode."""

from typing import Annotated

import typer

from moscope.cli import Shared, command
from moscope.wording import number, percent


@command
def run(shared: Shared,
        workload: Annotated[str, typer.Option(metavar="NAME", help="Workload.")] = "exim",
        cores: Annotated[str, typer.Option(metavar="N", help="Number of cores in use.")] = "48",
        warmup: Annotated[str, typer.Option(metavar="T", help="Detailed simulation before the timed window.")] = "1ms",
        window: Annotated[str, typer.Option(metavar="T", help="Timed window of detailed simulation.")] = "3ms",
        threads: Annotated[int | None, typer.Option(metavar="N",
                                                    help="Host threads that simulate the chips in parallel. Default: one per "
                                                         "processor.")] = None) -> int:
    """Measure the speed of detailed mode on a workload, with and without attribution.

    The targets are at least 8 million instructions per second (spin loops not
    counted), at most 20 % more time for attribution, and host memory below the
    touched guest pages plus 1 GB. The exit code is 1 if moscope misses one. Unless
    --set says otherwise, the cores are blocking and nothing prefetches.
    """
    from moscope import errors
    from moscope.bench import run as bench_run
    from moscope.runs import options

    document = bench_run.run(shared, options.Options(workload=workload, cores=cores, warmup=warmup, window=window, threads=threads))
    shared.result(document)
    if not shared.json:
        bars, beyond = document["bars"], document["rss_bytes"] - document["guest_touched_bytes"]
        used = f", {document['threads']} host threads" if document["threads"] > 1 else ""
        print(f"{document['workload']} on {number(document['cores'], 'core')}, {document['simulated_ms']:g} ms, cores active "
              f"{percent(document['busy'])} of the time{used}")
        spread = ", ".join(f"{mips:.2f}" for mips in document["mips_of_each"])
        costs = ", ".join(percent(cost, 1) for cost in document["attribution_overhead_of_each"])
        print(f"  speed               {document['mips']:>8.2f} million instructions per second (at least {bars['mips']:g}); "
              f"{document['mips_of_cpu']:.2f} per processor second")
        print(f"                      the median of {spread}")
        print(f"  host seconds        {document['host_s_per_ms']:>8.2f} per simulated millisecond")
        print(f"  attribution         {percent(document['attribution_overhead'], 1):>9} of the time without it (less than "
              f"{percent(bars['attribution_overhead'])}), the median of {costs}")
        print(f"  host memory         {document['rss_bytes'] >> 20:>8} MiB, {beyond >> 20} MiB beyond the guest's pages (less than "
              f"{bars['bytes_beyond_guest'] >> 20})")
    return errors.OK if document["ok"] else errors.FOUND
