# SPDX-License-Identifier: BSD-3-Clause
"""`moscope bench memory`: how fast the memory side runs on this host."""

from typing import Annotated

import typer

from moscope.cli import Shared, command
from moscope.errors import UserError


@command
def memory(shared: Shared,
           runs: Annotated[int, typer.Option(metavar="N", help="Runs of which the median counts.")] = 3,
           short: Annotated[bool, typer.Option("--short", help="A twentieth of the work: for a quick look.")] = False) -> None:
    """Measure the simulator's own speed: L1 hits, L3 misses, far DRAM misses and tester loads per host second."""
    from moscope import bench_memory

    if runs < 1:
        raise UserError(f"--runs: {runs}: 1 or more would be right")
    document = bench_memory.run(shared, runs, 0.05 if short else 1.0)
    if shared.json:
        shared.result(document)
        return
    print(f"{document['machine']}, {document['protocol']}, {document['cores']} cores; medians of {runs} runs, per second "
          "of host time")
    print(f"  L1 hits                 {document['l1_hits_per_s']:>14,.0f}")
    print(f"  misses served by the L3 {document['l3_misses_per_s']:>14,.0f}")
    print(f"  DRAM misses, {document['far_hops']} hops     {document['dram3_misses_per_s']:>14,.0f}")
    print(f"  tester loads, checked   {document['tester_loads_per_s']:>14,.0f}")
    costs = ", ".join(f"{cores}: {ns:,.0f}" for cores, ns in document["cost_per_miss_ns"].items())
    print(f"host ns per DRAM miss by cores: {costs} (largest over smallest {document['cost_growth']:.2f})")
