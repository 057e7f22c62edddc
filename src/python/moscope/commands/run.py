# SPDX-License-Identifier: BSD-3-Clause
"""`moscope run`: measures workloads and writes a run directory."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from moscope.cli import Shared, command


@command(fills_out=True)
def run(shared: Shared,
        workload: Annotated[str | None, typer.Option(metavar="NAME,..", help="Workloads to run. Default: `exim`.")] = None,
        program: Annotated[str | None, typer.Option(metavar="'FILE ARG ..'",
                                                    help="Linux program or script to run instead of a workload, with arguments. "
                                                         "{cores} is replaced by the core count.")] = None,
        packages: Annotated[list[str], typer.Option("--with", metavar="PACKAGE",
                                                    help="Debian package for the guest, with its dependencies; repeatable. The program "
                                                         "may come from the package.")] = [],  # noqa: B006
        env: Annotated[list[str], typer.Option(metavar="NAME=VALUE", help="Environment variable; repeatable.")] = [],  # noqa: B006
        stdin: Annotated[str | None, typer.Option(metavar="FILE", help="Standard input of the program.")] = None,
        take: Annotated[str | None, typer.Option(metavar="DIR", help="Folder to copy into the guest; the program runs in it.")] = None,
        begin: Annotated[str | None, typer.Option(metavar="MARKER|T",
                                                  help="Start of detailed simulation: a time after the workload's start, such as "
                                                       "250ms; threads (when all cores in use are busy); call:FUNCTION (its first "
                                                       "call); or text on the console. Default: the m5op workbegin.")] = None,
        count: Annotated[list[str], typer.Option(metavar="FUNCTION",
                                                 help="Function of the program or its libraries, or system call (syscall:write, "
                                                      "syscall:any). Each call counts as an operation, instead of each m5op "
                                                      "workend. Repeatable.")] = [],  # noqa: B006
        kernel: Annotated[str | None, typer.Option(metavar="NAME,..",
                                                   help="Kernels: distro, stock, pk, upstream, mixes such as pk-7, or files. Default: "
                                                        "those of the workload (stock,pk for `exim`).")] = None,
        cores: Annotated[str | None, typer.Option(metavar="LIST", help="Core counts. Default: 1,12,24,36,48, up to all cores.")] = None,
        warmup: Annotated[str | None, typer.Option(metavar="T",
                                                   help="Detailed simulation before the first window, such as 2ms. Default: that of the "
                                                        "workload (200us; 3ms to 5ms for `exim`; others in docs/workloads.md).")] = None,
        window: Annotated[str | None, typer.Option(metavar="T",
                                                   help="Length of a window, such as 5ms; `short` for rough results. Default: that of the "
                                                        "workload (500us; 3ms to 50ms for `exim`; others in docs/workloads.md).")] = None,
        windows: Annotated[int | None, typer.Option(metavar="N",
                                                    help="Number of consecutive windows; their spread gives the standard error. "
                                                         "Default: that of the workload (3; 10 for `gmake` and `pedsort`).")] = None,
        until_error: Annotated[str | None, typer.Option(metavar="P",
                                                        help="Measure windows until the standard error of throughput is below P, such as "
                                                             "3%. --windows is then the maximum (default: 50).")] = None,
        memory_per_node: Annotated[str | None, typer.Option(metavar="SIZE",
                                                            help="Memory per node, such as 1GiB; --set memory_per_node is the same. "
                                                                 "Default: that of the workload (512MiB; `metis-reduce`: 1GiB).")] = None,
        detail: Annotated[str, typer.Option(metavar="table|full",
                                            help="full: also write every transaction, as Parquet.")] = "table",
        threads: Annotated[int | None, typer.Option(metavar="N",
                                                    help="Host threads per point, which simulate the chips in parallel. All numbers from "
                                                         "2 up give the same statistics. Default: 1.")] = None,
        engine: Annotated[str, typer.Option(metavar="embedded|gem5",
                                            help="Simulation engine. gem5 boots the kernel of --kernel; without --kernel, it runs the "
                                                 "program in syscall emulation.")] = "embedded",
        gem5: Annotated[Path | None, typer.Option(metavar="PATH",
                                                  help="The gem5 binary. Default: the environment variable GEM5.")] = None) -> int:
    """Run a workload, measure it in detail, and report which cache lines cost the most time.

    Boots the kernel once per core count (later runs continue from a checkpoint),
    measures each core count in detailed mode, and writes a report. Repeat the
    command with the same options and --out to resume an interrupted run.
    With several values in a --set, such as links.clock=1GHz,2.4GHz, the command runs a sweep.
    """
    from moscope.gem5 import engines
    from moscope.runs import main, options, table

    chosen = options.Options(workload=workload, kernel=kernel, cores=cores, warmup=warmup, window=window, windows=windows, detail=detail,
                             memory_per_node=memory_per_node, begin=begin, program=program, threads=threads, until_error=until_error,
                             packages=tuple(packages), variables=tuple(env), stdin=stdin, take=take, count=tuple(count))
    if any("," in text for text in shared.sets) and not engines.is_gem5(engine, gem5):
        from moscope.sweeps import display, of_run

        if described := of_run.spec(shared, chosen):
            return display.run(described, shared)
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
