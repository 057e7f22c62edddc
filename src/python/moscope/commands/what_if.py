# SPDX-License-Identifier: BSD-3-Clause
"""`moscope what-if`: runs a finished run's windows again with some lines treated differently, and reports the throughput gained."""

from pathlib import Path
from typing import Annotated

import typer

from moscope.cli import SIMULATED, Shared, command


@command(fills_out=True, unused=SIMULATED)
def what_if(shared: Shared,
            run_dir: Annotated[Path, typer.Argument(metavar="RUN_DIR", help="Run directory written by `moscope run`.")],
            line: Annotated[str | None, typer.Option(metavar="NAME", help="Name of a line, or of the object that it is a part of "
                                                                          "(packed:stats covers packed:stats[2].packets). NAME can also be "
                                                                          "another field of the line; then only this field is "
                                                                          "moved.")] = None,
            how: Annotated[str | None, typer.Option("--as", metavar="padded|free|local",
                                                    help="padded: fields with different users get lines of their own. free: every "
                                                         "access hits. local: the node that waits most is the home. Default: "
                                                         "padded; free with --all.")] = None,
            all_names: Annotated[int | None, typer.Option("--all", metavar="N", help="Try the N objects with the most waiting, one by one, "
                                                                                     "and rank them by gain.", min=1)] = None,
            point: Annotated[str | None, typer.Option(metavar="NAME", help="Point to repeat, such as exim-pk-48. Default: the one that the "
                                                                           "report shows first.")] = None) -> int:
    """Measure what a line costs: run the same windows again with the line treated differently.

    Each experiment starts from the checkpoint of the run and measures the same
    windows. The gain is in operations per second, or in instructions per second
    for a program that counts no operations. Results go into RUN_DIR/what-if, or
    into --out.
    """
    import sys

    from moscope.runs.main import Outcome
    from moscope.runs.whatif import main, text

    document, failed = main.run(main.Asked(run_dir, line, how, all_names, point), shared)
    shared.result(document)
    if not shared.json and (document["results"] or not failed):
        from analysis.whatif.lines import LOCAL, MEANING

        if document["results"]:
            text.show(document, MEANING)
        else:
            why = "no controller sent a line over the network" if how == LOCAL else "no core waited for a line"
            print(f"{document['point']}: nothing to try: {why}")
    for error in failed:
        print(error.report(), file=sys.stderr)
    return Outcome(document, failed).exit_code
