# SPDX-License-Identifier: BSD-3-Clause
"""`moscope protocol check`: random test of a protocol that checks loaded values (contracts: moscope.check/1)."""

import json
import signal
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from moscope import buildproto, errors
from moscope.cli import Shared, command
from moscope.errors import MoscopeError, UserError
from moscope.wording import number

Result = TypeVar("Result")

if TYPE_CHECKING:
    from moscope.protocol.check import Subject
    from moscope.protocol.counterexample import Counterexample

UNREACHED_SHOWN = 20


@command
def check(shared: Shared,
          protocol: Annotated[str, typer.Argument(metavar="NAME|FILE.slicc", help="The protocol to test.")],
          cores: Annotated[int | None, typer.Option(metavar="N",
                                                    help="Number of cores, on as many of the machine's chips as divide it. "
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
          engine: Annotated[str, typer.Option(metavar="moscope|gem5", help="Engine whose random tester runs.")] = "moscope",
          counterexample: Annotated[Path | None, typer.Option(metavar="FILE",
                                                              help="File for the script that repeats a failure. "
                                                                   "Default: PROTOCOL.counterexample.toml.")] = None,
          shrink: Annotated[int, typer.Option(metavar="SECONDS",
                                              help="Time for shortening that script; 0: write no script.")] = 60,
          gem5: Annotated[Path | None, typer.Option(metavar="PATH",
                                                    help="The gem5 binary. Default: the environment variable GEM5.")] = None,
          ) -> int:
    """Test a protocol with colliding random accesses, random message delays, and real data in the messages."""
    from moscope.gem5 import engines
    from moscope.protocol import check as protocol_check
    from moscope.traces import files as trace_files

    protocol_check.check_ops("--ops", ops)
    if strict:
        buildproto.check_strictly(buildproto.find_protocol(protocol))
    if engines.is_gem5(engine, gem5):
        if in_flight is not None or without or include:
            raise UserError("--engine gem5: gem5's random tester lacks --in-flight, --without and --with: expected none of these options")
        return _on_gem5(shared, protocol, cores, ops, caches or "tiny", homes, gem5)
    protocol_check.check_shrinking("--shrink", shrink)
    if in_flight is not None:
        protocol_check.check_in_flight("--in-flight", in_flight)
    trace_files.check_target(counterexample, ".toml")
    subjects = protocol_check.subjects(protocol, shared.machine, shared.sets, ops, cores=cores, caches=caches, homes=homes,
                                       include=[w for w in include.split(",") if w], without=[w for w in without.split(",") if w],
                                       report=shared.say)
    subject = subjects[0]
    if left_out := subject.abilities.left_out():
        shared.say(f"{subject.protocol.name}: the test omits these kinds of access: {', '.join(left_out)}")
    if homes is None and subject.homes < subject.machine["chips"]:
        shared.say(f"{subject.protocol.name}: {subject.homes} home, as in gem5's random tester; --homes "
                   f"{subject.machine['chips']} tests with all nodes")
    chosen = {} if in_flight is None else {"in_flight": in_flight}
    documents, found = _tested(shared, subjects, protocol, ops, shrink, counterexample, chosen)
    document = protocol_check.together(documents)
    document = document if document["ok"] else _with(document, found)
    shared.answer(document, lambda: _print(document))
    if not shared.json:
        _show(shared, found)
    if document.get("stopped"):
        raise KeyboardInterrupt
    return errors.OK if document["ok"] else errors.FOUND


def _tested(shared: Shared, subjects: "list[Subject]", protocol: str, ops: int, shrink: int, counterexample: Path | None,
            chosen: dict[str, Any]) -> "tuple[list[dict[str, Any]], Counterexample | None]":
    """A run for each size of caches, which share the accesses, up to the first that fails or is interrupted."""
    from moscope.protocol import check as protocol_check

    documents, found = list[dict[str, Any]](), None
    for subject, share in zip(subjects, protocol_check.shares(subjects, ops), strict=True):
        document = _test(shared, subject, protocol, share, shrink, counterexample, chosen)
        if not document["ok"] and not document.get("stopped"):
            found = _repeat(shared, subject, protocol, share, shrink, counterexample, chosen)
        documents.append(document)
        if not document["ok"] or document.get("stopped"):
            break
    return documents, found


def _test(shared: Shared, subject: "Subject", protocol: str, ops: int, shrink: int, counterexample: Path | None,
          chosen: dict[str, Any]) -> dict[str, Any]:
    """One run; a protocol error is shown with the accesses that repeat it, and raised."""
    from moscope.protocol import check as protocol_check

    bar = _Bar(shared, ops)
    try:
        with bar:
            answer = protocol_check.random_test(subject, ops, shared.seed, progress=bar.show, **chosen)
    except protocol_check.Broken as error:
        bar.clear()
        found = _repeat(shared, subject, protocol, ops, shrink, counterexample, chosen)
        shared.result(_with(protocol_check.failed_document(subject, error, shared.seed), found))
        _show(shared, found)
        raise
    finally:
        bar.clear()
    return protocol_check.document(subject, answer, shared.seed)


def _repeat(shared: Shared, subject: "Subject", protocol: str, ops: int, seconds: int, file: Path | None,
            request: dict[str, Any]) -> "Counterexample | None":
    """The failure in a few accesses, on the same machine."""
    from moscope.protocol.counterexample import make
    from moscope.protocol.counterexample.write import Origin

    if not seconds:
        return None
    shared.say("looking for a short script that repeats the failure")
    origin = Origin(protocol if protocol in buildproto.known_protocols() else str(Path(protocol).absolute()),
                    str(Path(shared.machine).absolute()) if shared.machine.endswith(".py") else shared.machine, tuple(shared.sets),
                    subject.machine["cores"], subject.caches, subject.homes)
    target = file or Path(f"{subject.protocol.name}.counterexample.toml")
    return without_script(shared, lambda: make(subject, origin, ops, shared.seed, seconds, target, request, shared.say))


def without_script(shared: Shared, made: Callable[[], Result]) -> Result | None:
    """What `made` returns; None where it fails or is interrupted, as the failure that it would repeat is the command's answer."""
    try:
        return made()
    except MoscopeError as error:
        shared.say(f"no script that repeats the failure: {error}")
    except KeyboardInterrupt:
        shared.say("no script that repeats the failure: interrupted")
    return None


def _with(document: dict[str, Any], found: "Counterexample | None") -> dict[str, Any]:
    return {**document, "counterexample": found.as_json() if found else None}


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


class _Bar:
    """One line of progress on a terminal, nothing elsewhere. As a context it hears of an interruption (Ctrl-C) and ends the test, which
    then answers what it has; a second one ends the command."""

    def __init__(self, shared: Shared, total: int) -> None:
        self.total, self.done, self.last = total, 0, 0.0
        self.on = not shared.quiet and sys.stderr.isatty()
        self.stop = False
        self.before: list[tuple[int, Any]] = []

    def __enter__(self) -> None:
        def heard(*_: Any) -> None:
            self.stop = True
            self.__exit__()

        if threading.current_thread() is threading.main_thread():
            self.before = [(number, signal.signal(number, heard)) for number in (signal.SIGINT, signal.SIGTERM)]

    def __exit__(self, *_: object) -> None:
        while self.before:
            signal.signal(*self.before.pop())

    def show(self, done: int) -> bool:
        """False if the test is to end."""
        self.done = done
        now = time.monotonic()
        if self.on and now - self.last > 0.2:
            self.last = now
            print(f"\r{done:,} of {self.total:,} accesses", end="", file=sys.stderr, flush=True)
        return not self.stop

    def clear(self) -> None:
        if self.on:
            print("\r\033[K", end="", file=sys.stderr, flush=True)


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
