# SPDX-License-Identifier: BSD-3-Clause
"""`moscope protocol verify`: every state of a small machine (contracts: moscope.verify/1)."""

from pathlib import Path
from typing import Annotated, Any

import typer

from moscope import errors
from moscope.cli import Shared, command
from moscope.wording import number

UNREACHED_SHOWN = 20


@command(unused=("seed",))
def verify(shared: Shared,
           protocol: Annotated[str, typer.Argument(metavar="NAME|FILE.slicc", help="The protocol to verify.")],
           caches: Annotated[int, typer.Option(metavar="N", help="Number of cores, each with its caches.")] = 2,
           chips: Annotated[int, typer.Option(metavar="N", help="Number of chips that the cores are spread over.")] = 1,
           lines: Annotated[int, typer.Option(metavar="N", help="Number of cache lines.")] = 1,
           homes: Annotated[int, typer.Option(metavar="N", help="Number of chips that have memory and a home.")] = 1,
           requests: Annotated[str, typer.Option(metavar="LIST", help="Requests of the cores: ld, st, if, flush, nt, uncached.")] = "ld,st",
           device: Annotated[str, typer.Option(metavar="LIST", help="Requests of one device: read, write, part (a write to a part of a "
                                                                    "line). Default: no device.")] = "",
           memory: Annotated[str, typer.Option(metavar="SIZE", help="Memory limit. The exploration stops there and is reported as "
                                                                    "incomplete.")] = "8GiB",
           seconds: Annotated[int, typer.Option(metavar="N", help="Limit of host time. The exploration stops there and is reported "
                                                                   "as incomplete.")] = 3600,
           pending: Annotated[int, typer.Option(metavar="N",
                                                help="A core or device begins no access while it has more than N messages under way.")] = 2,
           messages: Annotated[int, typer.Option(metavar="N",
                                                 help="Maximum number of messages under way; more are reported as a violation.")] = 24,
           evict: Annotated[bool, typer.Option("--evict/--no-evict",
                                               help="Caches may evict a line at any time, even if they need no room.")] = True,
           symmetry: Annotated[bool, typer.Option("--symmetry/--no-symmetry",
                                                  help="Count states as one if they differ only in the names of equivalent cores, chips or "
                                                       "lines.")] = True,
           reduce: Annotated[bool, typer.Option("--reduce/--no-reduce",
                                                help="Explore fewer states: DRAM serves a request at once if its delay cannot matter, and "
                                                     "data that no rule reads is cleared.")] = True,
           threads: Annotated[int, typer.Option(metavar="N", help="Number of host threads; 0: one for each processor.")] = 0,
           counterexample: Annotated[Path | None, typer.Option(metavar="FILE",
                                                               help="File for the script that repeats a violation on the engine. "
                                                                    "Default: as for `protocol check`.")] = None,
           shrink: Annotated[int, typer.Option(metavar="SECONDS",
                                               help="Time limit for shortening that script; 0: write no script.")] = 20,
           ) -> int:
    """Explore every state that a small machine with this protocol can reach, with messages in every order."""
    from moscope.commands.protocol.check import words
    from moscope.protocol import verification
    from moscope.protocol.verify import Bounds

    bounds = Bounds(caches, chips, homes, lines, words(requests), words(device), evict=evict, symmetry=symmetry, reduce=reduce,
                    pending=pending, messages=messages)
    asked = verification.Asked(protocol, bounds, memory, seconds, threads, counterexample, shrink)
    document = verification.run(shared, asked)
    shared.answer(document, lambda: _print(document, without_a_script(document["steps"], asked.file, shrink)))
    return errors.OK if document["ok"] else errors.FOUND


def without_a_script(steps: list[dict[str, Any]], file: Path, seconds: int) -> str:
    """Why a violation has no script, with a warning about an earlier file of the name that the script would have."""
    if not seconds:
        why = "--shrink is 0"
    elif any("evicts" in step for step in steps):
        why = "the path contains an eviction"
    elif any("device" in step for step in steps):
        why = "the path contains an access of a device"
    else:
        why = "no script that fails on the engine was found"
    return f"no script was written: {why}" + (f"; {file} is from an earlier run" if file.exists() else "")


def _print(document: dict[str, Any], no_script: str) -> None:
    print(f"{document['protocol']}: {number(document['caches'], 'cache')} on {number(document['chips'], 'chip')}, "
          f"{number(document['homes'], 'home')}, {number(document['lines'], 'line')}, requests {', '.join(document['requests'])}"
          + (f"; a device: {', '.join(document['device'])}" if document["device"] else ""))
    print(f"{document['states']:,} states{' seen' if document['violation'] else ''}, {document['depth']} steps deep, "
          f"{document['steps_taken']:,} steps in {document['seconds']:.1f} s, {document['memory'] / 2**20:,.0f} MiB; "
          f"each stands for up to {number(document['renamings'], 'state')} with other names")
    if document["violation"]:
        print(f"violation at the end of these {number(len(document['steps']), 'step')}: {document['violation']}")
        for i, step in enumerate(document["steps"], 1):
            print(f"  {i:3} {step['what']}")
            for transition in step["transitions"]:
                print(f"        {transition}")
        if end := document["end"]:
            print("in the end:")
            for text in (*end["states"], *(end["messages"] or ["no message is under way"])):
                print(f"      {text}")
        if document["counterexample"]:
            print(f"`moscope trace {document['counterexample']}` replays it, "
                  f"`moscope step {document['counterexample']}` shows it in the browser")
            print(f"in the script: {', '.join(document['script_names'])}")
        else:
            print(no_script)
        return
    if not document["complete"]:
        limit = {"memory": "--memory", "time": "--seconds", "states": "their numbers have 32 bits"}[document["limit"]]
        print(f"incomplete: the exploration reached its limit of {document['limit']} ({limit}); no violation among these states")
        return
    print("verified: every state was explored, none violates the properties"
          + (", and from each one all requests can be served" if document["liveness"] else
             "; whether all requests can be served was not checked: --memory was too small"))
    unreachable = document["unreachable"]
    print(f"transitions: {document['declared'] - len(unreachable)} of {document['declared']} are reachable")
    for name in unreachable[:UNREACHED_SHOWN]:
        print(f"  unreachable: {name}")
    if len(unreachable) > UNREACHED_SHOWN:
        print(f"  and {len(unreachable) - UNREACHED_SHOWN} more (--json lists all)")
