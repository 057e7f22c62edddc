# SPDX-License-Identifier: BSD-3-Clause
"""`moscope bench threads`: an estimate of what host processors give."""

from typing import Annotated

import typer

from moscope.cli import Shared, command
from moscope.wording import number, percent


@command
def threads(shared: Shared,
            workload: Annotated[str, typer.Option(metavar="NAME", help="Workload.")] = "exim",
            cores: Annotated[str, typer.Option(metavar="N", help="Number of cores in use.")] = "48",
            warmup: Annotated[str, typer.Option(metavar="T", help="Detailed simulation before the recorded window.")] = "1ms",
            window: Annotated[str, typer.Option(metavar="T", help="Recorded window of detailed simulation.")] = "1ms",
            ) -> None:
    """Estimate the time of a window on 2, 4, 8 and 16 host processors.

    Records the processor time of each chip in each epoch on one host thread, and
    computes the time with more threads: as built (all threads wait at each
    barrier), and by pairs (no barrier; a chip waits only for the chips near it).
    Unless --set says otherwise, the cores are blocking and nothing prefetches.
    """
    from moscope.bench import threads as bench
    from moscope.runs import options

    document = bench.run(shared, options.Options(workload=workload, cores=cores, warmup=warmup, window=window))
    shared.result(document)
    if shared.json:
        return
    print(f"{document['machine']}: {document['workload']} on {number(document['cores'], 'core')}, {document['window_ms']:g} ms, "
          f"{document['epochs']:,} epochs of {document['us_per_epoch']:.1f} us of work on {number(document['chips'], 'chip')}")
    print(f"  processor time: {document['one_process_s']:.2f} s as one logical process, {document['recorded_s']:.2f} s with one for each "
          f"chip ({document['division']:.2f} times)")
    print("estimated time relative to one thread, with barriers (as built) and by pairs; for the former, the shares of waiting")
    print(f"{'processors':>12}{'as built':>10}{'by pairs':>10}{'imbalance':>12}{'at rest':>10}{'barriers':>10}")
    for row in document["rows"]:
        waits = row["waits"]
        print(f"{row['processors']:>12}{row['as_built']:>10.2f}{row['by_pairs']:>10.2f}{percent(waits['imbalance']):>13}"
              f"{percent(waits['at_rest']):>11}{percent(waits['barriers']):>11}")
