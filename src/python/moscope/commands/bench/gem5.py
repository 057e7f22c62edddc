# SPDX-License-Identifier: BSD-3-Clause
"""`moscope bench gem5`: the speed of detailed mode, compared with gem5's."""

from pathlib import Path
from typing import Annotated

import typer

from moscope.cli import Shared, command
from moscope.wording import number, percent


@command
def gem5(shared: Shared,
         workload: Annotated[str, typer.Option(metavar="NAME", help="Workload; its program must use threads, not processes.")] = "counter",
         cores: Annotated[str, typer.Option(metavar="N", help="Number of cores in use.")] = "48",
         warmup: Annotated[str, typer.Option(metavar="T", help="Detailed simulation before the timed window.")] = "50us",
         window: Annotated[str, typer.Option(metavar="T",
                                             help="Timed window of detailed simulation. A window of 4 ms contains a timer tick of "
                                                  "each core.")] = "4ms",
         path: Annotated[Path | None, typer.Option("--gem5", metavar="PATH",
                                                   help="The gem5 binary. Default: the environment variable GEM5.")] = None) -> int:
    """Compare the speed of detailed mode with gem5's TimingSimpleCPU on the same program, machine and protocol.

    The target is 60 times gem5's instructions per second. The exit code is 1 if
    moscope misses it.
    """
    from moscope import errors
    from moscope.bench import gem5 as bench_gem5
    from moscope.runs import options

    document = bench_gem5.run(shared, options.Options(workload=workload, cores=cores, warmup=warmup, window=window), path)
    shared.result(document)
    if not shared.json:
        print(f"{document['workload']} on {number(document['cores'], 'core')}; host load {document['load'][0]:.1f} to "
              f"{document['load'][1]:.1f}")
        for name in ("moscope", "gem5"):
            one = document[name]
            print(f"  {name:<8} {one['mips']:>9.4f} million instructions per second: {one['instructions']:,} in {one['host_s']:.1f} s, "
                  f"{one['simulated_ms']:g} ms, cores active {percent(one['busy'])} of the time")
        print(f"  ratio    {document['ratio']:>9.1f} (at least {document['bars']['ratio']:g})")
    return errors.OK if document["ok"] else errors.FOUND
