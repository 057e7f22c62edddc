# SPDX-License-Identifier: BSD-3-Clause
"""`moscope latency`: the machine's idle latencies (and bandwidths), compared with references."""

from pathlib import Path
from typing import Annotated, Any

import typer

from moscope.cli import Shared, command
from moscope.errors import UserError

DEFAULT_OUT = Path("moscope-out/latency")


@command(fills_out=True)
def latency(shared: Shared,
            bandwidth: Annotated[bool, typer.Option("--bandwidth",
                                                    help="Also measure the bandwidth of a node, of the machine, and of all cores "
                                                         "reading all nodes.")] = False,
            engine: Annotated[str, typer.Option(metavar="embedded|gem5", help="Simulation engine.")] = "embedded",
            gem5: Annotated[Path | None, typer.Option(metavar="PATH",
                                                      help="The gem5 binary. Default: the environment variable GEM5.")] = None) -> None:
    """Measure the idle load latency of each memory level and compare it with published values."""
    from moscope.gem5 import engines

    if engines.is_gem5(engine, gem5):
        if bandwidth:
            raise UserError("--bandwidth: moscope measures no bandwidths on gem5: expected no --bandwidth, or --engine embedded")
        _on_gem5(shared, gem5)
    else:
        _on_moscope(shared, bandwidth)


def _on_moscope(shared: Shared, bandwidth: bool) -> None:
    from moscope import jsonio
    from moscope.experiment import prepare
    from moscope.latencies import bandwidth as latency_bandwidth
    from moscope.latencies import report as latency_report
    from moscope.latencies import rows as latency_rows
    from moscope.traces import files as trace_files

    out = shared.out or DEFAULT_OUT
    jsonio.check_replaceable(out)
    subject = prepare(shared)
    rows = []
    for level in latency_rows.levels(subject):
        shared.say(f"measuring {level.name}")
        rows.append(latency_rows.measure(subject, level))
    document: dict[str, Any] = {"schema": "moscope.latency/1", "machine": subject.machine.name,
                                "protocol": subject.protocol, "seed": subject.seed, "rows": []}
    bandwidths = []
    if bandwidth:
        for load in latency_bandwidth.loads(subject):
            shared.say(f"measuring {load.name} bandwidth")
            bandwidths.append(latency_bandwidth.measure(subject, load))
    with jsonio.atomic_dir(out) as folder:
        for row in rows:
            name = row.name.replace(" ", "-")
            trace_files.write_whole(folder / f"{name}.json", (jsonio.dumps(row.trace) + "\n").encode())
            document["rows"].append(latency_report.row_json(row, str(out / f"{name}.json")))
        document["rows"] += [latency_bandwidth.row_json(b) for b in bandwidths]
        trace_files.write_whole(folder / "latency.json", (jsonio.dumps(document) + "\n").encode())
    if shared.json:
        shared.result(document)
    else:
        latency_report.print_tables(subject, rows, bandwidths, out)


def _on_gem5(shared: Shared, path: Path | None) -> None:
    from moscope import jsonio
    from moscope.experiment import prepare
    from moscope.gem5 import binary, ladder
    from moscope.latencies import report as latency_report
    from moscope.latencies import rows as latency_rows

    out = shared.out or DEFAULT_OUT
    jsonio.check_replaceable(out)
    subject = prepare(shared)
    gem5 = binary.require(binary.find(path), subject.protocol)
    document: dict[str, Any] = {"schema": "moscope.latency/1", "machine": subject.machine.name, "engine": "gem5",
                                "protocol": subject.protocol, "seed": subject.seed, "rows": []}
    with jsonio.atomic_dir(out) as folder:
        for level in latency_rows.levels(subject):
            shared.say(f"measuring {level.name} on gem5")
            name = level.name.replace(" ", "-")
            row = ladder.measure(subject, gem5, level, folder.resolve() / name)
            document["rows"].append(ladder.row_json(row, str(out / name / "accesses.txt")))
        (folder / "latency.json").write_text(jsonio.dumps(document) + "\n", encoding="utf-8")
    if shared.json:
        shared.result(document)
    else:
        latency_report.print_gem5(document)
