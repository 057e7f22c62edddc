# SPDX-License-Identifier: BSD-3-Clause
"""`moscope crosscheck`: the same accesses on the embedded engine and on gem5 (contracts: moscope.crosscheck/1)."""

from pathlib import Path
from typing import Annotated, Any

import typer

from moscope import errors
from moscope.cli import Shared, command
from moscope.errors import UserError
from moscope.wording import number

DEFAULT_OUT = Path("moscope-out/crosscheck")
ACCESSES = 100_000


@command(fills_out=True)
def crosscheck(shared: Shared,
               gem5: Annotated[Path | None, typer.Option(metavar="PATH",
                                                         help="The gem5 binary. Default: the environment variable GEM5.")] = None,
               accesses: Annotated[int | None, typer.Option(metavar="N",
                                                            help=f"Number of random accesses. Default: {ACCESSES}.")] = None,
               cores: Annotated[int | None, typer.Option(metavar="N",
                                                         help="Number of cores. Default: all cores of the machine.")] = None,
               caches: Annotated[str, typer.Option(metavar="tiny|machine",
                                                   help="Cache sizes; tiny caches cause frequent replacements.")] = "tiny",
               together: Annotated[bool, typer.Option("--together",
                                                      help="Issue accesses on all cores concurrently, not one at a time.")] = False,
               script: Annotated[str | None, typer.Option(metavar="'SCRIPT'",
                                                          help="Accesses to make instead of random ones, in the syntax of `moscope "
                                                               "trace` (ld, st, if, rmw, flush).")] = None) -> int:
    """Run the same accesses on moscope and on gem5; compare transitions, latencies, messages and final states."""
    from moscope import buildproto, config, jsonio
    from moscope.gem5 import binary
    from moscope.gem5 import crosscheck as check
    from moscope.gem5.job import ScriptedAccess
    from moscope.traces import script as trace_script

    if accesses is not None and accesses < 1:
        raise UserError(f"--accesses: {accesses}: expected 1 or more")
    if caches not in ("tiny", "machine"):
        raise UserError(f"--caches: {caches!r}: expected tiny or machine")
    out = shared.out or DEFAULT_OUT
    jsonio.check_replaceable(out)
    machine = config.load_machine(shared.machine, shared.sets)
    if cores is not None:
        machine = config.with_cores(machine, cores)
    steps = trace_script.parse(script, machine, trace_script.CACHED_OPS) if script is not None else []
    for access in (a for step in steps for a in step):
        if access.device or access.size is not None or access.at or access.delays:
            raise UserError(f"--script: {access.text!r}: crosscheck makes only whole accesses of cores, without delays: expected no "
                            "device, size, time or delay")
    if script is not None and (accesses is not None or together):
        raise UserError(f"--script and {'--together' if together else '--accesses'}: both are given: expected one of the two")
    user = binary.require(binary.find(gem5), buildproto.find_protocol(str(machine.protocol)).stem)
    subject = check.prepare(machine, caches, shared.seed, shared.say)
    if script is not None:
        together = any(len(step) > 1 for step in steps)
        wanted = [ScriptedAccess(n, a.core, a.op, a.address) for n, step in enumerate(steps) for a in step]
    else:
        wanted = check.random_accesses(subject, accesses or ACCESSES, caches, together)
    with jsonio.atomic_dir(out) as folder:
        document = check.run(user, subject, wanted, folder.resolve(), together, shared.say)
        (folder / "crosscheck.json").write_text(jsonio.dumps(document) + "\n", encoding="utf-8")
    shared.answer(document, lambda: _print(document))
    return errors.OK if document["ok"] else errors.FOUND


def _print(document: dict[str, Any]) -> None:
    counts = document["transitions"]
    print(f"{document['protocol']} on {document['machine']}, {number(document['cores'], 'core')}, {document['accesses']:,} accesses "
          f"{document['mode']}")
    print(f"transitions: {counts['moscope']:,} on moscope, {counts['gem5']:,} on gem5, "
          f"{'identical' if document['transitions_equal'] else 'different'}")
    print(f"final states: {'identical' if document['states_equal'] else 'different'}; "
          f"messages: {'identical' if document['messages_equal'] else 'different'}")
    if document["mode"] != "together":  # where accesses wait for each other, and not for the same ones on both
        print(f"latency: gem5's differs by {100 * document['latency_mean_error']:.1f} % on average, "
              f"{100 * document['latency_max_error']:.1f} % at most")
    for engine, faults in document["invariants"].items():
        print(f"invariants on {engine}: {'hold' if not faults else ''}")
        for fault in faults:
            print(f"  {fault}")
    if first := document["first_difference"]:
        print(f"first difference at access {first['access']}: {first['text']}")
        for engine in ("moscope", "gem5"):
            for line in first[f"only_{engine}"]:
                print(f"  only {engine}: {line}")
