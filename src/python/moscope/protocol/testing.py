# SPDX-License-Identifier: BSD-3-Clause
"""A random test from its options to its document, with a script that repeats a failure: `moscope protocol check` and `moscope.check`."""

import signal
import sys
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from moscope import buildproto
from moscope.cli import Shared
from moscope.errors import MoscopeError
from moscope.protocol import check
from moscope.protocol.check import Broken, Subject
from moscope.protocol.counterexample import Counterexample, make
from moscope.protocol.counterexample.write import Origin
from moscope.traces.files import check_target

Result = TypeVar("Result")


@dataclass(frozen=True)
class Asked:
    """What is tested, as the options of `protocol check` have it. `counterexample`: file for the script that repeats a failure (None:
    PROTOCOL.counterexample.toml); `shrink`: seconds for shortening it, 0 for no script."""

    protocol: str
    cores: int | None = None
    ops: int = check.DEFAULT_OPS
    caches: str | None = None
    in_flight: int | None = None
    homes: int | None = None
    include: Sequence[str] = ()
    without: Sequence[str] = ()
    counterexample: Path | None = None
    shrink: int = 60

    def request(self) -> dict[str, Any]:
        return {} if self.in_flight is None else {"in_flight": self.in_flight}


@dataclass(frozen=True)
class Tested:
    """`document`: moscope.check/1. `broken`: the protocol error that ended the test. `found`: what repeats the failure."""

    document: dict[str, Any]
    found: Counterexample | None = None
    broken: Broken | None = None


def run(shared: Shared, asked: Asked, watch: check.Progress | None = None) -> Tested:
    """A run for each size of caches, which share the accesses, up to the first that fails or is interrupted. `watch` gets the number of
    accesses done. UserError before anything runs."""
    check.check_ops("--ops", asked.ops)
    check.check_shrinking("--shrink", asked.shrink)
    if asked.in_flight is not None:
        check.check_in_flight("--in-flight", asked.in_flight)
    check_target(asked.counterexample, ".toml")
    subjects = check.subjects(asked.protocol, shared.machine, shared.sets, asked.ops, cores=asked.cores, caches=asked.caches,
                              homes=asked.homes, include=asked.include, without=asked.without, report=shared.say)
    _remarks(shared, subjects[0], asked)
    documents: list[dict[str, Any]] = []
    before = 0
    for subject, ops in zip(subjects, check.shares(subjects, asked.ops), strict=True):
        part = _test(shared, subject, replace(asked, ops=ops), partial(_count_on, watch, before) if watch else None)
        before += ops
        if part.broken:
            return part
        documents.append(part.document)
        if not part.document["ok"] or part.document.get("stopped"):
            break
    document = check.together(documents)
    return Tested(document if document["ok"] else _with(document, part.found), part.found)


def _count_on(watch: check.Progress, before: int, done: int) -> bool | None:
    return watch(before + done)


def _remarks(shared: Shared, subject: Subject, asked: Asked) -> None:
    if left_out := subject.abilities.left_out():
        shared.say(f"{subject.protocol.name}: the test omits these kinds of access: {', '.join(left_out)}")
    if asked.homes is None and subject.homes < subject.machine["chips"]:
        shared.say(f"{subject.protocol.name}: {subject.homes} home, as in gem5's random tester; --homes "
                   f"{subject.machine['chips']} tests with all nodes")


def _test(shared: Shared, subject: Subject, asked: Asked, watch: check.Progress | None) -> Tested:
    bar = _Bar(shared, asked.ops, watch)
    try:
        with bar:
            answer = check.random_test(subject, asked.ops, shared.seed, progress=bar.show, **asked.request())
    except Broken as error:
        bar.clear()
        found = _repeat(shared, subject, asked)
        return Tested(_with(check.failed_document(subject, error, shared.seed), found), found, error)
    finally:
        bar.clear()
    document = check.document(subject, answer, shared.seed)
    failed = not document["ok"] and not document.get("stopped")
    return Tested(document, _repeat(shared, subject, asked) if failed else None)


def _with(document: dict[str, Any], found: Counterexample | None) -> dict[str, Any]:
    return {**document, "counterexample": found.as_json() if found else None}


def _repeat(shared: Shared, subject: Subject, asked: Asked) -> Counterexample | None:
    """The failure in a few accesses, on the same machine."""
    if not asked.shrink:
        return None
    shared.say("looking for a short script that repeats the failure")
    origin = Origin(anywhere(asked.protocol), machine_anywhere(shared.machine), tuple(shared.sets), subject.machine["cores"],
                    subject.caches, subject.homes)
    target = asked.counterexample or Path(f"{subject.protocol.name}.counterexample.toml")
    return without_script(shared, lambda: make(subject, origin, asked.ops, shared.seed, asked.shrink, target, asked.request(), shared.say))


def anywhere(protocol: str) -> str:
    """The protocol for a script file that may be used in another folder."""
    return protocol if protocol in buildproto.known_protocols() else str(Path(protocol).absolute())


def machine_anywhere(machine: str) -> str:
    return str(Path(machine).absolute()) if machine.endswith(".py") else machine


def without_script(shared: Shared, made: Callable[[], Result]) -> Result | None:
    """What `made` returns; None where it fails or is interrupted, as the failure that it would repeat is the command's answer."""
    try:
        return made()
    except MoscopeError as error:
        shared.say(f"no script that repeats the failure: {error}")
    except KeyboardInterrupt:
        shared.say("no script that repeats the failure: interrupted")
    return None


class _Bar:
    """One line of progress on a terminal, nothing elsewhere. As a context it hears of an interruption (Ctrl-C) and ends the test, which
    then answers what it has; a second one ends the command."""

    def __init__(self, shared: Shared, total: int, watch: check.Progress | None) -> None:
        self.total, self.last, self.watch = total, 0.0, watch
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
        if self.watch:
            self.watch(done)
        now = time.monotonic()
        if self.on and now - self.last > 0.2:
            self.last = now
            print(f"\r{done:,} of {self.total:,} accesses", end="", file=sys.stderr, flush=True)
        return not self.stop

    def clear(self) -> None:
        if self.on:
            print("\r\033[K", end="", file=sys.stderr, flush=True)
