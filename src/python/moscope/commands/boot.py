# SPDX-License-Identifier: BSD-3-Clause
"""`moscope boot`: Linux on the simulated machine, with a shell on its serial console or a script."""

from pathlib import Path
from typing import Annotated

import typer

from moscope.cli import Shared, command
from moscope.wording import number


@command(fills_out=True)
def boot(shared: Shared,
         kernel: Annotated[str | None, typer.Option(metavar="NAME|FILE", help="Kernel to boot: `distro` (Debian's cloud kernel, "
                                                    "the default), `stock`, `pk`, `upstream` or a mix such as `pk-7` (the project's "
                                                    "kernel), or a file (bzImage, vmlinux, Multiboot).")] = None,
         initrd: Annotated[Path | None, typer.Option(metavar="FILE", help="Initial file system instead of moscope's.")] = None,
         append: Annotated[str | None, typer.Option(metavar="STR", help="More for the kernel's command line.")] = None,
         disk: Annotated[Path | None, typer.Option(metavar="FILE", help="Image of the virtio disk (squashfs or raw); the "
                                                   "file is never written to.")] = None,
         cores: Annotated[int | None, typer.Option(metavar="N", help="Cores in use; the others are absent.")] = None,
         memory_per_node: Annotated[str | None, typer.Option(metavar="SIZE", help="Memory of each node: 512MiB.")] = None,
         script: Annotated[Path | None, typer.Option(metavar="FILE", help="Run this in the guest, then power off.")] = None,
         checkpoint_at: Annotated[str | None, typer.Option(metavar="MARKER", help="Write a checkpoint when the console shows "
                                                           "this text; `ready`: before script or shell, `shell`: "
                                                           "at the shell's prompt.")] = None,
         resume: Annotated[Path | None, typer.Option("--from", metavar="FILE", help="Go on from a checkpoint.")] = None) -> int:
    """Boot Linux and give a shell on the serial console.

    Keys go to the guest, Ctrl-C too; Ctrl-] then q ends the run and keeps its results, Ctrl-] then ? shows more.
    Input that is no terminal is typed, a line at each prompt; at its end the shell ends and the guest powers off.
    """
    import sys
    from dataclasses import replace

    from moscope.boot import console, plan, result, run, session

    options = plan.Options(kernel, initrd, append, disk, cores, memory_per_node, script, checkpoint_at, resume)
    planned = plan.make(shared, options)
    show, terminal = run.plain_terminal(shared.json)
    if not shared.json and not terminal and not script and not sys.stdin.isatty():
        planned = replace(planned, typed=session.piped_lines(sys.stdin.buffer))
    for remark in planned.remarks:
        shared.say(remark)
    if terminal:
        shared.say(f"booting {planned.config['info']['kernel']['name']} on {number(planned.config['cores'], 'core')}; {console.HELP}")
    outcome, document, log = run.run(planned, show, terminal)
    if shared.json:
        shared.result(document)
    for remark in result.remarks(planned, outcome):
        print(remark, file=sys.stderr)
    shared.say(f"{outcome.ended} after {outcome.host_s:.1f} s: {outcome.executed:,} instructions, {outcome.mips:.1f} MIPS, "
               f"{outcome.ticks / 1e15:.3f} s simulated; results in {planned.out}")
    if outcome.ended in (*session.DEATHS, session.LACKING):
        raise result.death(outcome, log)
    if outcome.ended == "interrupted":
        raise KeyboardInterrupt
    return result.exit_code(planned, outcome)
