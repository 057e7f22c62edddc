# SPDX-License-Identifier: BSD-3-Clause
"""`moscope bench streams`: bandwidths of STREAM's loops."""

from typing import Annotated

import typer

from moscope.cli import Shared, command


@command
def streams(shared: Shared,
            in_flight: Annotated[int | None, typer.Option("--in-flight", metavar="N", min=1, max=64,
                                                          help="Lines that a core requests at a time. Default: the machine's "
                                                               "outstanding_misses.")] = None,
            ) -> None:
    """Measure read, write, copy and triad bandwidth of one core, a chip and the machine, each core in its own node's memory."""
    from moscope.bench import streams as bench_streams
    from moscope.experiment import prepare
    from moscope.wording import significant

    subject = prepare(shared)
    lines = in_flight or int(subject.machine.outstanding_misses)
    rows = []
    for cores in bench_streams.core_counts(subject):
        for loop in bench_streams.LOOPS:
            shared.say(f"{loop} on {cores} cores")
            rows.append(bench_streams.measure(subject, loop, cores, lines))
    shared.result({"schema": bench_streams.SCHEMA, "machine": subject.machine.name, "protocol": subject.protocol, "rows": rows})
    if shared.json:
        return
    print(f"{subject.machine.name}, {subject.protocol}: {lines} lines in flight per core")
    print(f"{'loop':<8}{'cores':>6}{'GB/s':>9}{'ns/line':>9}")
    for row in rows:
        print(f"{row['loop']:<8}{row['cores']:>6}{significant(row['gb_per_s'], 3):>9}{row['ns_per_line']:>9.2f}")
