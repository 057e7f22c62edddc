# SPDX-License-Identifier: BSD-3-Clause
"""`moscope boot`: Linux on the simulated machine, with a shell on its serial console or a script."""

from contextlib import suppress
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
         initrd: Annotated[Path | None, typer.Option(metavar="FILE",
                                                     help="Initial file system to use instead of moscope's.")] = None,
         append: Annotated[str | None, typer.Option(metavar="STR", help="Text to append to the kernel command line.")] = None,
         disk: Annotated[Path | None, typer.Option(metavar="FILE",
                                                   help="Image of the virtio disk (squashfs or raw). The file is never written.")] = None,
         packages: Annotated[list[str], typer.Option("--with", metavar="PACKAGE",
                                                     help="Debian package for the guest, with its dependencies; "
                                                          "repeatable.")] = [],  # noqa: B006
         cores: Annotated[int | None, typer.Option(metavar="N",
                                                   help="Number of cores in use; the other cores are absent. Default: all "
                                                        "cores of the machine.")] = None,
         memory_per_node: Annotated[str | None, typer.Option(metavar="SIZE", help="Memory per node, such as 512MiB.")] = None,
         net: Annotated[bool, typer.Option("--net", help="Add a network card with clients (docs/ethernet.md).")] = False,
         pcap: Annotated[Path | None, typer.Option(metavar="FILE",
                                                   help="Write all frames of the card to a capture file; implies --net.")] = None,
         script: Annotated[Path | None, typer.Option(metavar="FILE",
                                                     help="Script to run in the guest before it powers off.")] = None,
         checkpoint_at: Annotated[str | None, typer.Option(metavar="MARKER",
                                                           help="Write a checkpoint when the console shows this text. `ready`: before "
                                                                "the script or the shell starts; `shell`: at the shell's prompt.")] = None,
         resume: Annotated[Path | None, typer.Option("--from", metavar="FILE",
                                                     help="Continue from a checkpoint.")] = None) -> int:
    """Boot Linux and open a shell on the serial console.

    All keys go to the guest, including Ctrl-C. Ctrl-] then q ends the run and
    keeps its results; Ctrl-] then ? lists more keys. Input from a file or a pipe
    is typed, one line at each prompt. At its end, the guest powers off.
    """
    import sys

    from moscope.boot import console, plan, result, run, session

    options = plan.Options(kernel=kernel, initrd=initrd, append=append, disk=disk, cores=cores, memory_per_node=memory_per_node,
                           script=script, checkpoint_at=checkpoint_at, resume=resume, net=net, pcap=pcap, packages=tuple(packages))
    planned = plan.make(shared, options)
    show, terminal = run.plain_terminal(shared.json)
    if not shared.json and not terminal and not script and not sys.stdin.isatty():
        planned = planned.with_lines(session.piped_lines(sys.stdin.buffer))
    for remark in planned.remarks:
        shared.say(remark)
    if terminal:
        shared.say(f"booting {planned.config['info']['kernel']['name']} on {number(planned.config['cores'], 'core')}; {console.HELP}")
    outcome, document, log = run.run(planned, show, terminal)
    if show and log and not log.endswith(b"\n"):
        with suppress(console.Gone):
            show(b"\n")
    if shared.json:
        shared.result(document)
    for remark in result.remarks(planned, outcome):
        print(remark, file=sys.stderr)
    shared.say(f"{outcome.ended} after {outcome.host_s:.1f} s: {outcome.done}; results in {planned.out}")
    if death := result.death(planned, outcome, log):
        raise death
    if outcome.ended == "interrupted":
        raise KeyboardInterrupt
    return result.exit_code(planned, outcome)
