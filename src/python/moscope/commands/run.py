# SPDX-License-Identifier: BSD-3-Clause
"""`moscope run`: the main job."""

from pathlib import Path
from typing import Annotated

import typer

from moscope.cli import Shared, command


@command(fills_out=True)
def run(shared: Shared,
        workload: Annotated[str | None, typer.Option(metavar="NAME,..", help="What the guest runs; `exim` if not "
                                                     "given.")] = None,
        program: Annotated[str | None, typer.Option(metavar="'FILE ARG ..'", help="A static Linux program of your own in place of a "
                                                    "workload, with its arguments, in which {cores} stands for the core count.")] = None,
        begin: Annotated[str | None, typer.Option(metavar="MARKER|T", help="Where detailed time begins: at a time after the workload's "
                                                  "start, as 250ms, or when the console shows a text; at m5 workbegin if not given.")] = None,
        kernel: Annotated[str | None, typer.Option(metavar="NAME,..", help="Kernels: distro, stock, pk, upstream, mixes such as "
                                                   "pk-7, files; the workload's own (stock,pk for `exim`) if not given.")] = None,
        cores: Annotated[str | None, typer.Option(metavar="LIST", help="Core counts; 1,12,24,36,48 if not given.")] = None,
        warmup: Annotated[str | None, typer.Option(metavar="T", help="Detailed time before anything counts, as 2ms; if "
                                                   "not given the workload's own: 200us, 3ms to 5ms for `exim`, others in "
                                                   "docs/workloads.md.")] = None,
        window: Annotated[str | None, typer.Option(metavar="T", help="Length of a window, as 5ms; if not given the workload's "
                                                   "own: 500us, 3ms to 50ms for `exim`, others in docs/workloads.md.")] = None,
        windows: Annotated[int | None, typer.Option(metavar="N", help="Windows, one after the other, from whose spread the "
                                                    "errors come; 3 if not given.")] = None,
        memory_per_node: Annotated[str | None, typer.Option(metavar="SIZE", help="Memory of each node, as 1GiB; the workload's own "
                                                            "(512MiB) if not given.")] = None,
        detail: Annotated[str, typer.Option(metavar="table|full", help="full: every transaction too, as "
                                            "Parquet.")] = "table",
        threads: Annotated[int | None, typer.Option(metavar="N", help="Host threads of each point, which run the machine's chips side by "
                                                    "side, with the same statistics; 1 if not given.")] = None,
        engine: Annotated[str, typer.Option(metavar="moscope|gem5", help="gem5: with the --kernel that is named, else the "
                                            "program alone in gem5's syscall emulation.")] = "moscope",
        gem5: Annotated[Path | None, typer.Option(metavar="PATH", help="The gem5 binary; the environment variable GEM5 if "
                                                  "not given.")] = None) -> int:
    """Run a workload on simulated cores and tell where their time goes, line by line.

    Boots the kernel (once per core count; later runs go on from a checkpoint), measures each core count in detailed
    mode and writes a report. A run that was interrupted goes on where it was, with the same options and --out.
    """
    import sys

    from moscope.gem5 import engines
    from moscope.run import main, options, table

    chosen = options.Options(workload, kernel, cores, warmup, window, windows, detail, memory_per_node, begin, program, threads)
    if engines.is_gem5(engine, gem5):
        from moscope.gem5 import points

        outcome, show = points.run(shared, chosen, gem5), points.show
    else:
        outcome, show = main.run(options.make(shared, chosen), shared), table.show
    if shared.json:
        shared.result(outcome.document)
    elif outcome.document["points"]:
        show(outcome.document)
    for error in outcome.failed:
        print(error.report(), file=sys.stderr)
    return outcome.exit_code
