# SPDX-License-Identifier: BSD-3-Clause
"""`moscope trace`: a handful of scripted accesses, with every message, transition and segment of latency."""

from pathlib import Path
from typing import Annotated

import typer

from moscope.cli import Shared, command


@command(fills_out=True)
def trace(shared: Shared,
          script: Annotated[str, typer.Argument(metavar="'SCRIPT'",
                                                help="Accesses such as 'c0 ld A@n0; c1 st A@n0'. Each is cCORE OP ADDR. OP is ld, st, "
                                                     "if, rmw, flush, nt or ldu; ADDR is a number or LETTER@nNODE. ';' waits for the "
                                                     "previous access, '|' starts at the same time.")],
          svg: Annotated[Path | None, typer.Option(metavar="FILE", help="Write a sequence diagram as SVG.")] = None,
          png: Annotated[Path | None, typer.Option(metavar="FILE", help="Write a sequence diagram as PNG.")] = None) -> None:
    """Run a short script of accesses and print every message and transition with its time."""
    from moscope.config import load_machine
    from moscope.experiment import prepare
    from moscope.traces import files as trace_files
    from moscope.traces import text as trace_text
    from moscope.traces.document import run_script
    from moscope.traces.script import parse

    # Mistakes in the script or the files' names show before anything is built.
    machine = load_machine(shared.machine, shared.sets)
    steps = parse(script, machine)
    for path in (svg, png):
        trace_files.check_target(path)
    document = run_script(prepare(shared, machine), steps, script)
    trace_files.write_diagrams(document, svg, png)
    if shared.out:
        trace_files.write_folder(shared.out, document)
    if shared.json:
        shared.result(document)
    else:
        trace_text.print_trace(document)
