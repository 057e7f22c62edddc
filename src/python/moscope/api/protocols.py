# SPDX-License-Identifier: BSD-3-Clause
"""`moscope.check` and `moscope.verify`: the tests of the commands `protocol check` and `protocol verify`."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from moscope.api import html
from moscope.api.folders import Place
from moscope.api.machine import AnyMachine, machine_of
from moscope.api.progress import Watcher, call
from moscope.api.values import place, several, switch, text, whole
from moscope.errors import UserError


@dataclass(frozen=True, repr=False)
class Check:
    """A random test. `document`: moscope.check/1, with `accesses`, `checked_loads`, `reached`, `declared` and others."""

    document: dict[str, Any]

    def __repr__(self) -> str:
        d = self.document
        return (f"Check({d['protocol']!r}, {d['machine']!r}, ok={self.ok}, ops={d['ops']}, violations={len(self.violations)}, "
                f"reached={d['reached']}, declared={d['declared']})")

    @property
    def ok(self) -> bool:
        return bool(self.document["ok"])

    @property
    def violations(self) -> list[str]:
        """Each violation as text, with the last transitions of its line. A protocol error that ended the test comes first."""
        return list(self.document["violations"])

    @property
    def unreached(self) -> list[str]:
        """Transitions that the protocol declares, and that were not taken: `L1Cache IM x Inv`."""
        return list(self.document["unreached"])

    def _repr_html_(self) -> str:
        d = self.document
        found = "no violation" if self.ok else self.violations[0].splitlines()[0]
        return html.table(f"{d['protocol']} on {d['machine']}, {d['cores']} cores: {found}",
                          ["accesses", "loads checked", "violations", "transitions reached", "of"],
                          [[d["ops"], d["checked_loads"], len(self.violations), d["reached"], d["declared"]]])


@dataclass(frozen=True, repr=False)
class Verification:
    """An exploration of all states of a small machine. `document`: moscope.verify/1, with `steps_taken`, `memory` and others."""

    document: dict[str, Any]

    def __repr__(self) -> str:
        d = self.document
        return (f"Verification({d['protocol']!r}, caches={d['caches']}, lines={d['lines']}, ok={self.ok}, complete={self.complete}, "
                f"states={self.states}, unreachable={len(self.unreachable)})")

    @property
    def ok(self) -> bool:
        """No state that was seen violates the properties."""
        return bool(self.document["ok"])

    @property
    def complete(self) -> bool:
        """Every state was seen."""
        return bool(self.document["complete"])

    @property
    def states(self) -> int:
        return int(self.document["states"])

    @property
    def unreachable(self) -> list[str]:
        """Transitions that the protocol declares, and that no state takes: `Directory B_A x InvAck`. If `complete` is false, later
        states may take them."""
        return list(self.document["unreachable"])

    @property
    def violation(self) -> str | None:
        violation: str | None = self.document["violation"]
        return violation

    @property
    def steps(self) -> list[dict[str, Any]]:
        """The shortest path to the violation: `what` happens and the `transitions` taken, for each step."""
        return list(self.document["steps"])

    def _repr_html_(self) -> str:
        d = self.document
        found = self.violation or ("verified" if self.complete else "incomplete: no violation among these states")
        shown = html.table(f"{d['protocol']}, {d['caches']} caches, {d['lines']} lines: {found}",
                           ["states", "depth", "unreachable transitions", "of"],
                           [[self.states, d["depth"], len(self.unreachable), d["declared"]]])
        path = [[i, s["what"], ", ".join(s["transitions"])] for i, s in enumerate(self.steps, 1)]
        return shown + (html.table("path to the violation", ["", "step", "transitions"], path) if path else "")


def check(protocol: Place, machine: AnyMachine = "opteron48", *, cores: int | None = None, ops: int = 1_000_000,
          caches: str | None = None, in_flight: int | None = None, homes: int | None = None, include: Iterable[str] = (),
          without: Iterable[str] = (), counterexample: Place | None = None, shrink: int = 60, seed: int = 1,
          progress: Watcher = None) -> Check:
    """Tests a protocol, by its name or its file, with colliding random accesses, random message delays, and real data in the messages.
    Omitted arguments have the defaults of the command `protocol check`; `include` is its option `--with`.

    `counterexample`: the file for the script that repeats a failure, shortened for at most `shrink` seconds; without it, no script is
    made. `moscope.trace(counterexample)` replays it. Raises UserError for options that are not accepted, before anything runs, and
    for a protocol that cannot be compiled. A failure of the protocol is no exception: `ok` is false.
    """
    from moscope.protocol import testing

    chosen, file = machine_of(machine), _file(counterexample)
    asked = testing.Asked(_protocol("moscope.check", protocol), _number("--cores", cores), whole("--ops", ops), text("--caches", caches),
                          _number("--in-flight", in_flight), _number("--homes", homes), several("--with", include),
                          several("--without", without), file, whole("--shrink", shrink) if file else 0)
    shared = call(chosen, seed, progress)
    tested = testing.run(shared, asked, lambda done: shared.at("testing", min(done / asked.ops, 1.0)))
    if tested.document.get("stopped"):
        raise KeyboardInterrupt
    return Check(tested.document)


def verify(protocol: Place, machine: AnyMachine = "opteron48", *, caches: int = 2, chips: int = 1, lines: int = 1, homes: int = 1,
           requests: Iterable[str] = ("ld", "st"), device: Iterable[str] = (), memory: str = "8GiB", seconds: int = 3600,
           pending: int = 2, messages: int = 24, evict: bool = True, symmetry: bool = True, reduce: bool = True, threads: int = 0,
           counterexample: Place | None = None, shrink: int = 20, progress: Watcher = None) -> Verification:
    """Explores every state that a small machine with this protocol, a name or a file, can reach, with messages in every order
    (docs/verifying.md). The arguments are the options of the command `protocol verify`.

    `counterexample`: the file for a script that repeats a violation on the engine, shortened for at most `shrink` seconds; without
    it, no script is made. Raises UserError for options that are not accepted, before anything runs, and for a protocol that cannot
    be explored. A violation is no exception: `ok` is false.
    """
    from moscope.protocol import verification
    from moscope.protocol.verify import Bounds

    chosen, file = machine_of(machine), _file(counterexample)
    bounds = Bounds(whole("--caches", caches), whole("--chips", chips), whole("--homes", homes), whole("--lines", lines),
                    several("--requests", requests), several("--device", device), messages=whole("--messages", messages),
                    pending=whole("--pending", pending), evict=switch("--evict", evict),
                    symmetry=switch("--symmetry", symmetry), reduce=switch("--reduce", reduce))
    asked = verification.Asked(_protocol("moscope.verify", protocol), bounds, text("--memory", memory) or "", whole("--seconds", seconds),
                               whole("--threads", threads), file, whole("--shrink", shrink) if file else 0)
    return Verification(verification.run(call(chosen, 1, progress), asked))


def _protocol(function: str, given: Any) -> str:
    if given is None:
        raise UserError(f"{function}: None: expected the name or the file of a protocol")
    return place(function, given, "the name or the file of a protocol") or ""


def _file(given: Any) -> Path | None:
    return None if given is None else Path(place("--counterexample", given, "the name of a file") or "")


def _number(option: str, value: Any) -> int | None:
    return None if value is None else whole(option, value)
