# SPDX-License-Identifier: BSD-3-Clause
"""`moscope bench instructions`: host instructions for one access, by part of the simulator."""

from typing import Annotated

import typer

from moscope.cli import Shared, command


@command
def instructions(shared: Shared,
                 load: Annotated[list[str], typer.Option("--load", metavar="NAME", help="Load to count: l1_hit, l2_hit, l3_hit, dram_far, "
                                                         "tester, exim_48; repeatable. Default: all but "
                                                         "exim_48.")] = [],  # noqa: B006
                 ) -> None:
    """Count host instructions for a cache hit, a DRAM access and a checked load of the random tester.

    Runs under valgrind, which is installed if it is missing. The counts do not depend on the host's load.
    exim_48 counts a measurement window of exim on 48 cores instead, per guest instruction outside spin loops; it takes
    a few minutes.
    """
    from moscope.bench import instructions as bench

    document = bench.run(shared, load)
    shared.result(document)
    if shared.json:
        return
    rows = document["rows"]
    print(f"{document['machine']}, {document['protocol']}: host instructions per load (exim_48: per guest instruction outside spin loops)")
    print(f"{'':<26}" + "".join(f"{row['name']:>12}" for row in rows))
    print(f"{'all':<26}" + "".join(f"{row['instructions']:>12,.1f}" for row in rows))
    print(f"{'wake-ups':<26}" + "".join(f"{row['wake_ups']:>12,.2f}" for row in rows))
    for part in rows[0]["parts"]:
        if any(row["parts"][part] >= 0.05 for row in rows):
            print(f"  {part:<24}" + "".join(f"{row['parts'][part]:>12,.1f}" for row in rows))
    for row in rows:
        if "with_spinning" in row:
            print(f"{row['name']}: {row['with_spinning']:,.1f} if the guest's instructions in spin loops are counted, too")
