# SPDX-License-Identifier: BSD-3-Clause
"""`moscope protocol check`: random test of a protocol that checks loaded values (contracts: moscope.check/1)."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from moscope import buildproto, errors
from moscope.cli import Shared, command
from moscope.errors import UserError
from moscope.wording import number

if TYPE_CHECKING:
    from moscope.protocol.counterexample import Counterexample

UNREACHED_SHOWN = 20


@command
def check(shared: Shared,
          protocol: Annotated[str, typer.Argument(metavar="NAME|FILE.slicc", help="The protocol to test.")],
          cores: Annotated[int | None, typer.Option(metavar="N",
                                                    help="Number of cores, spread evenly over as many chips as possible. "
                                                         "Default: all cores of the machine.")] = None,
          ops: Annotated[int, typer.Option(metavar="N", help="Number of accesses.")] = 1_000_000,
          caches: Annotated[str | None, typer.Option(metavar="SIZES",
                                                     help="Cache sizes: tiny (frequent replacements), machine or mixed (half of the "
                                                          "accesses each). Default: tiny; mixed for protocols that are not part "
                                                          "of moscope.")] = None,
          in_flight: Annotated[int | None, typer.Option(metavar="N", help="Outstanding accesses per core.")] = None,
          homes: Annotated[int | None, typer.Option(metavar="N",
                                                    help="Number of home nodes. Default: all; 1 for protocols that are not part of "
                                                         "moscope.")] = None,
          without: Annotated[str, typer.Option(metavar="LIST",
                                               help="Kinds of access to omit: flush,nt_store,uncached_load,dma.")] = "",
          include: Annotated[str, typer.Option("--with", metavar="LIST",
                                               help="Kinds of access to include: flush,dma. By default, the test omits them for "
                                                    "protocols that are not part of moscope.")] = "",
          strict: Annotated[bool, typer.Option("--strict",
                                               help="Before the test, treat warnings such as missing transitions, unreachable states "
                                                    "and unused actions as errors.")] = False,
          engine: Annotated[str, typer.Option(metavar="embedded|gem5", help="Engine whose random tester runs.")] = "embedded",
          counterexample: Annotated[Path | None, typer.Option(metavar="FILE",
                                                              help="File for the script that repeats a failure. "
                                                                   "Default: PROTOCOL.counterexample.toml.")] = None,
          shrink: Annotated[int, typer.Option(metavar="SECONDS",
                                              help="Time limit for shortening that script; 0: write no script.")] = 60,
          gem5: Annotated[Path | None, typer.Option(metavar="PATH",
                                                    help="The gem5 binary. Default: the environment variable GEM5.")] = None,
          ) -> int:
    """Test a protocol with colliding random accesses, random message delays, and real data in the messages."""
    from moscope.gem5 import engines
    from moscope.protocol import testing
    from moscope.protocol.check import check_ops

    check_ops("--ops", ops)
    if strict:
        buildproto.check_strictly(buildproto.find_protocol(protocol))
    if engines.is_gem5(engine, gem5):
        if in_flight is not None or without or include:
            raise UserError("--engine gem5: gem5's random tester lacks --in-flight, --without and --with: expected none of these options")
        return _on_gem5(shared, protocol, cores, ops, caches or "tiny", homes, gem5)
    asked = testing.Asked(protocol, cores, ops, caches, in_flight, homes, words(include), words(without), counterexample, shrink)
    tested = testing.run(shared, asked)
    if tested.broken:
        shared.result(tested.document)
    else:
        shared.answer(tested.document, lambda: _print(tested.document))
    if tested.broken or not shared.json:
        _show(shared, tested.found)
    if tested.broken:
        raise tested.broken
    if tested.document.get("stopped"):
        raise KeyboardInterrupt
    return errors.OK if tested.document["ok"] else errors.FOUND


def words(listed: str) -> tuple[str, ...]:
    return tuple(word for word in listed.split(",") if word)


def _show(shared: Shared, found: "Counterexample | None") -> None:
    """What repeats the failure, and how to see it."""
    if not found:
        return
    shared.say(f"counterexample: {found.accesses} of {found.recorded:,} accesses, {found.replays} replays in "
               f"{found.seconds:.1f} s, {found.file}\n  {found.script}\n  {found.what}\n"
               f"`moscope trace {found.file}` replays it, `moscope step {found.file}` shows it in the browser")


def _on_gem5(shared: Shared, protocol: str, cores: int | None, ops: int, caches: str, homes: int | None, path: Path | None) -> int:
    """gem5's random tester on the same machine; its folder is not kept when it found nothing."""
    import tempfile

    from moscope.gem5 import binary, random_test
    from moscope.protocol import check as protocol_check

    subject = protocol_check.prepare(protocol, shared.machine, shared.sets, cores=cores, caches=caches, homes=homes,
                                     jitter=None, report=shared.say)
    gem5 = binary.require(binary.find(path), subject.protocol.name)
    interface = json.loads(subject.protocol.interface.read_text(encoding="utf-8"))
    with tempfile.TemporaryDirectory(prefix="moscope-gem5-") as folder:
        document = random_test.run(gem5, subject, interface, ops, shared.seed, Path(folder))
    shared.result(document)
    if not shared.json:
        _print(document)
    return errors.OK


def _print(document: dict[str, Any]) -> None:
    print(f"{document['protocol']} on {document['machine']}, {number(document['cores'], 'core')} in {number(document['chips'], 'chip')}, "
          f"{document['homes']} home{'s' * (document['homes'] > 1)}, {document['caches']} caches: "
          f"{document['ops']:,} accesses in {document['seconds']:.1f} s, "
          f"{document['checked_loads']:,} loads checked ({document['loads_per_second']:,.0f} per second)")
    print(f"transitions reached: {document['reached']} of {document['declared']} declared")
    for name in document["unreached"][:UNREACHED_SHOWN]:
        print(f"  not reached: {name}")
    if len(document["unreached"]) > UNREACHED_SHOWN:
        print(f"  and {len(document['unreached']) - UNREACHED_SHOWN} more (--json lists all)")
    if document.get("stopped"):
        print("interrupted: the results cover the test up to then")
    print("no violation" if document["ok"] else f"{number(len(document['violations']), 'violation')}:")
    for line in violation_lines(document["violations"]):
        print(f"  {line}")


def violation_lines(violations: list[str]) -> list[str]:
    """The first violation with the last transitions of its line, and one line for each of the others."""
    if not violations:
        return []
    rest = [text.splitlines() for text in violations[1:]]
    more = any(len(lines) > 1 for lines in rest)
    return [*violations[0].splitlines(), *(lines[0] for lines in rest),
            *(["(--json lists the last transitions of the other lines, too)"] if more else [])]
