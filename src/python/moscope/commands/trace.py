# SPDX-License-Identifier: BSD-3-Clause
"""`moscope trace`: a handful of scripted accesses, with every message, transition and segment of latency."""

from pathlib import Path
from typing import Annotated

import typer

from moscope.cli import Shared, command


@command(fills_out=True)
def trace(shared: Shared,
          script: Annotated[str, typer.Argument(metavar="'SCRIPT'|FILE.toml",
                                                help="Accesses such as 'c0 ld A@n0; c1 st A@n0+8'. Each is cCORE OP ADDR. OP is ld, st, "
                                                     "if, rmw, flush, nt or ldu; ADDR is a number or LETTER@nNODE, with +OFFSET and "
                                                     ":BYTES. ';' waits for the previous access, '|' starts at the same time. Or a "
                                                     "script file, such as a counterexample of `protocol check`.")],
          steps: Annotated[str | None, typer.Option(metavar="A-B", help="Print and draw only these steps, such as 2-3.")] = None,
          svg: Annotated[Path | None, typer.Option(metavar="FILE", help="Write a sequence diagram as SVG.")] = None,
          png: Annotated[Path | None, typer.Option(metavar="FILE", help="Write a sequence diagram as PNG.")] = None) -> int:
    """Run a short script of accesses and print every message and transition with its time."""
    from moscope.stepping import options
    from moscope.stepping.subject import prepared
    from moscope.traces import files as trace_files
    from moscope.traces import part
    from moscope.traces import text as trace_text
    from moscope.traces.document import exit_code, run_script

    # Mistakes in the script or the files' names show before anything is built.
    spec, _ = options.chosen(shared, script, None, None)
    trace_files.check_target(svg, ".svg")
    trace_files.check_target(png, ".png")
    subject, accesses = prepared(spec, shared.quiet)
    wanted = part.wanted(steps, len(accesses))
    whole = run_script(subject, accesses, spec.script, spec.checked)
    document = part.of(whole, wanted)
    trace_files.write_diagrams(document, svg, png)
    if shared.out and (remark := trace_files.write_folder(shared.out, document)):
        shared.say(remark)
    shared.answer(document, lambda: trace_text.print_trace(document, trace_text.end_texts(whole)))
    return exit_code(document)
