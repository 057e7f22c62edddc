# SPDX-License-Identifier: BSD-3-Clause
"""`moscope step`: the accesses of a script in the browser, forwards and backwards."""

from pathlib import Path
from typing import Annotated

import typer

from moscope.cli import Shared, command
from moscope.stepping.examples import names


@command(fills_out=True)
def step(shared: Shared,
         script: Annotated[str | None, typer.Argument(metavar="'SCRIPT'|FILE.toml",
                                                       help="Accesses such as 'c0 ld A@n0; c1 st A@n0', or a script file, both as for "
                                                            "`moscope trace`.")] = None,
         example: Annotated[str | None, typer.Option(metavar="NAME",
                                                     help=f"Show an example with its explanation: {', '.join(names())}.")] = None,
         protocol: Annotated[str | None, typer.Option(metavar="NAME|FILE.slicc", help="Protocol to use instead of the machine's.")] = None,
         html: Annotated[Path | None, typer.Option(metavar="FILE", help="Write the page as one file that needs no server.")] = None,
         run: Annotated[Path | None, typer.Option(metavar="DIR", help="Show an episode of a run: the folder of the run or of one of its "
                                                                      "points.")] = None,
         line: Annotated[str | None, typer.Option(metavar="NAME", help="With --run: name of the line whose episode is shown. Default: "
                                                                       "the hottest line that has an episode.")] = None,
         port: Annotated[int, typer.Option(metavar="N", help="Port of the local server; 0: any free port.")] = 0) -> int:
    """Step through the accesses of a script in the browser, forwards and backwards."""
    from moscope.stepping import open as opening
    from moscope.stepping import options

    opening.check(html, port)
    if run is not None:
        options.check_run(shared, script, example, protocol)
        from moscope.stepping.episode import find, history_of

        episode = find(run, line)
        if line is not None and line != episode.name:
            from analysis.maps import asked

            shared.say(asked.note(line, episode.name))
        return opening.show(shared, history_of(episode), None, html, port)
    spec, shown = options.chosen(shared, script, example, protocol, line)
    return opening.show(shared, opening.of_spec(spec, shown), spec, html, port)
