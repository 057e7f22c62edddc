# SPDX-License-Identifier: BSD-3-Clause
"""`moscope bench memory`: the speed of the memory model on this host."""

from typing import Annotated

import typer

from moscope.cli import Shared, command
from moscope.errors import UserError
from moscope.wording import number


@command
def memory(shared: Shared,
           runs: Annotated[int, typer.Option(metavar="N", help="Number of runs; the result is the median.")] = 3,
           threads: Annotated[int, typer.Option(metavar="N",
                                                help="Host threads that simulate chips in parallel, for misses. L1 hits and the tester "
                                                     "use one thread.")] = 1,
           short: Annotated[bool, typer.Option("--short", help="Do one twentieth of the work.")] = False) -> int:
    """Measure the speed of the memory model: L1 hits, L3 misses, far DRAM misses and tester loads per host second.

    The targets per second are 100 million L1 hits, 2 million L3 misses, 0.5
    million DRAM misses and 50 000 loads of the tester; with more cores, a miss may
    take at most 1.25 times as long. The exit code is 1 if moscope misses a target.
    """
    from moscope import errors
    from moscope.bench import memory as bench_memory
    from moscope.runs.options import MOST_THREADS

    if runs < 1:
        raise UserError(f"--runs: {runs}: expected 1 or more")
    if not 1 <= threads <= MOST_THREADS:
        raise UserError(f"--threads: {threads}: expected 1 to {MOST_THREADS}")
    document = bench_memory.run(shared, runs, 0.05 if short else 1.0, threads)
    shared.result(document)
    if shared.json:
        return errors.OK if document["ok"] else errors.FOUND
    bars = document["bars"]

    def row(name: str, key: str) -> None:
        print(f"  {name:<23} {document[key]:>14,.0f}     (at least {bars[key]:,.0f}" + (": missed)" if key in document["missed"] else ")"))

    print(f"{document['machine']}, {document['protocol']}, {number(document['cores'], 'core')}; medians of {number(runs, 'run')}, "
          "per second of host time")
    row("L1 hits", "l1_hits_per_s")
    row("misses served by the L3", "l3_misses_per_s")
    row(f"DRAM misses, {document['far_hops']} hops", "dram3_misses_per_s")
    row("tester loads, checked", "tester_loads_per_s")
    costs = ", ".join(f"{cores}: {ns:,.0f}" for cores, ns in document["cost_per_miss_ns"].items())
    print(f"host ns per DRAM miss by cores: {costs} (largest over smallest {document['cost_growth']:.2f}, at most {bars['cost_growth']:g}"
          + (": missed)" if "cost_growth" in document["missed"] else ")"))
    return errors.OK if document["ok"] else errors.FOUND
