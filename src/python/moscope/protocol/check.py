# SPDX-License-Identifier: BSD-3-Clause
"""A protocol on a machine, ready to be tested; used by `moscope protocol check` and by the tests.

The random test keeps several accesses of every core and device in flight to a small pool of lines, with random
message delays and the data in the messages, and checks every value that is read (src/cpu/testers).
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from moscope import buildproto, config, patience
from moscope.buildproto import BuiltProtocol
from moscope.errors import ProtocolError, UserError, unknown_name

SCHEMA = "moscope.check/1"
DEFAULT_OPS = 1_000_000
MOST_OPS = 10**18
MOST_SHRINKING = 10**9  # seconds
ADDED = ("flush", "dma")  # the kinds of accesses that `--with` may name
JITTER = "40ns"
# A request older than this is stuck. The limit is far longer than a request waits when all cores compete for one line.
WATCHDOG_FS = 2_000_000_000_000
# The lines of a test per node: neighbouring lines, and lines that map to the same sets.
POOLS = {
    "tiny": {"lines_per_node": 3, "strided_lines_per_node": 5},
    # Over all nodes, more lines per set than the ways of any array of the supplied machines.
    "machine": {"lines_per_node": 4, "strided_lines_per_node": 16},
}

Progress = Callable[[int], bool | None]


class Broken(ProtocolError):
    """A protocol error in a random test; `answer` is the engine's answer for the test up to the error."""

    def __init__(self, text: str, answer: dict[str, Any]) -> None:
        super().__init__(text)
        self.answer = answer


@dataclass(frozen=True)
class Abilities:
    """The accesses that a protocol supports besides loads and stores; a test leaves out the others."""

    flush: bool
    nt_store: str  # none, whole_line, any
    uncached_load: bool
    devices: str  # none, gentle (whole-line writes, no two devices at one line), any

    def left_out(self) -> list[str]:
        return [name for name, there in (("flush", self.flush), ("nt_store", self.nt_store != "none"),
                                         ("uncached_load", self.uncached_load), ("dma", self.devices != "none")) if not there]


@dataclass(frozen=True)
class Subject:
    """A machine elaborated for a protocol, and the protocol's libraries."""

    protocol: BuiltProtocol
    machine: dict[str, Any]
    abilities: Abilities
    caches: str = "tiny"
    slowness: float = 1.0  # moscope.patience

    @property
    def text(self) -> str:
        return json.dumps(self.machine)

    @property
    def homes(self) -> int:
        """Nodes that have memory and a directory."""
        return len(self.machine["address_map"])

    def watchdog_fs(self, usual: int) -> int:
        """The age at which a request counts as stuck: `usual`, or more if the machine is so slow."""
        return patience.limit(usual, self.slowness)

    def pool(self) -> dict[str, int]:
        """The numbers of lines of the test on each home. The total is the same for any number of homes."""
        share = -(-self.machine["chips"] // self.homes)
        return {key: lines * share for key, lines in POOLS[self.caches].items()}

    def request(self, ops: int, seed: int) -> dict[str, Any]:
        """The request for the engine's random test (src/experiment/testing.hh)."""
        have = self.abilities
        return {"ops": ops, "seed": seed, "flush": have.flush, "nt_store": have.nt_store, "uncached_load": have.uncached_load,
                "devices": have.devices, **self.pool()}

    def default_left_out(self) -> list[str]:
        """What a test leaves out unless asked for: with a protocol that was written for gem5, the accesses that gem5's own random
        tester does not make either, because such protocols often lack transitions for them."""
        return [] if self.protocol.own else ["flush", "dma"]

    def with_library(self, checking: Path) -> "Subject":
        """The same subject with another checking library, such as that of a mutant."""
        return replace(self, protocol=replace(self.protocol, checking=lambda: checking))

    def leave_out(self, names: list[str]) -> "Subject":
        """The same subject without accesses of these kinds: flush, nt_store, uncached_load, dma."""
        have = self.abilities
        for name in names:
            if name == "flush":
                have = replace(have, flush=False)
            elif name == "nt_store":
                have = replace(have, nt_store="none")
            elif name == "uncached_load":
                have = replace(have, uncached_load=False)
            elif name == "dma":
                have = replace(have, devices="none")
            else:
                raise unknown_name("--without", "kind of access", name, ["flush", "nt_store", "uncached_load", "dma"])
        return replace(self, abilities=have)


def default_homes(protocol: BuiltProtocol) -> int | None:
    """How many homes a test has unless asked for: all nodes (None) for the project's own protocols, one for those
    from elsewhere, as in gem5's random tester (--num-dirs is 1 there): protocols that rely on one home to order
    all forwards, such as gem5's MI_example, stop with several (docs/warts.md)."""
    return None if protocol.own else 1


def abilities_of(interface: dict[str, Any], machine: dict[str, Any], own: bool) -> Abilities:
    """The abilities of a protocol. Its interface shows whether it has a DMA machine. The machine's sequencers show whether
    they flush lines, and how they translate non-temporal stores (as plain stores, these would test nothing new) and
    uncached loads.

    The project's own protocols support all accesses of devices. Protocols that were written for gem5 mostly expect a single
    DMA controller, which writes lines from their beginning on.
    """
    def has_parameter(m: dict[str, Any], kind: str) -> bool:
        return any(p["type"] == kind for p in m["params"])

    sequencers = [c["sequencer"] for c in machine["controllers"] if "sequencer" in c]
    types = {s.get("nt_store_type", "ST") for s in sequencers}
    return Abilities(
        flush=any(s.get("flushes", False) for s in sequencers),
        nt_store="any" if types and "ST" not in types else "none",
        uncached_load=bool(sequencers) and all(s.get("uncached_load_type", "NULL") != "NULL" for s in sequencers),
        devices="none" if not any(has_parameter(m, "DMASequencer") for m in interface["machines"])
        else "any" if own else "gentle",
    )


def refuse_other_protocol(protocol: str, sets: Sequence[str]) -> None:
    """Raises UserError if the options of the machine choose another protocol than the one that is to be tested."""
    for given in sets:
        key, _, other = (part.strip() for part in given.partition("="))
        if key == "protocol" and buildproto.find_protocol(other) != buildproto.find_protocol(protocol):
            raise UserError(f"--set {given:.80}: the command tests {protocol}: expected no other protocol")


def refuse_lacking(subject: Subject, include: Sequence[str], without: Sequence[str]) -> None:
    """Raises UserError for kinds of access that `--with` names, but that the protocol lacks or `--without` leaves out."""
    if both := [name for name in include if name in without]:
        raise UserError(f"--with: {', '.join(both)}: also in --without: expected one of the two options")
    lacking = subject.abilities.left_out()
    if asked := [name for name in include if name in lacking]:
        known = [name for name in ADDED if name not in lacking]
        raise UserError(f"--with: {', '.join(asked)}: the protocol has none: expected {' or '.join(known) or 'no such option'}")


def prepare(protocol: str | BuiltProtocol, machine: str, sets: list[str] | None = None, *, cores: int | None = None,
            caches: str = "tiny", network: str = "hypertransport", jitter: str | None = JITTER, homes: int | None = None,
            report: Callable[[str], None] = lambda text: None) -> Subject:
    """Builds the protocol if need be and elaborates the machine for it; `homes` as in `elaborate`, or else
    `default_homes`. UserError for anything unknown."""
    if caches not in POOLS:
        raise UserError(f"--caches: {caches!r}: expected tiny or machine")
    if isinstance(protocol, str):
        refuse_other_protocol(protocol, sets or [])
    described = config.load_machine(machine, sets or [])
    made = buildproto.ensure_protocol(protocol, report=report) if isinstance(protocol, str) else protocol
    interface = json.loads(made.interface.read_text(encoding="utf-8"))
    if cores is not None:
        described = config.with_cores(described, cores, config.cores_together(interface))
    try:
        elaborated = config.elaborate(described, interface, caches=caches, network=network,
                                      jitter=config.Time(jitter) if jitter else None,
                                      homes=default_homes(made) if homes is None else homes)
    except config.ConfigError as error:
        raise config.blamed(error, machine, sets or []) from None
    return Subject(made, elaborated, abilities_of(interface, elaborated, made.own), caches, patience.slowness(described, elaborated))


def subjects(protocol: str, machine: str, sets: list[str], ops: int, *, cores: int | None = None, caches: str | None = None,
             homes: int | None = None, include: Sequence[str] = (), without: Sequence[str] = (),
             report: Callable[[str], None] = lambda text: None) -> list[Subject]:
    """The parts of a random test: one for each size of caches. `shares` divides the accesses among them. By default, the caches
    are tiny; for protocols from elsewhere, they are mixed."""
    if other := [name for name in include if name not in ADDED]:
        raise unknown_name("--with", "kind of access", other[0], ADDED)
    own = buildproto.find_protocol(protocol) in buildproto.known_protocols().values()
    caches = caches or ("tiny" if own else "mixed")
    if caches not in (*POOLS, "mixed"):
        raise UserError(f"--caches: {caches!r}: expected tiny, machine or mixed")
    found: list[Subject] = []
    for size in (["tiny", "machine"] if ops > 1 else ["tiny"]) if caches == "mixed" else [caches]:
        subject = prepare(protocol, machine, sets, cores=cores, caches=size, homes=homes, report=report if not found else lambda text: None)
        refuse_lacking(subject, include, without)
        found.append(subject.leave_out([*(k for k in subject.default_left_out() if k not in include), *without]))
    return found


def shares(parts: list[Subject], ops: int) -> list[int]:
    """The number of accesses of each part."""
    return [ops - ops // 2, ops // 2] if len(parts) == 2 else [ops]


def check_ops(option: str, ops: int) -> None:
    if not 1 <= ops <= MOST_OPS:
        raise UserError(f"{option}: {ops}: expected {'1 or more' if ops < 1 else f'{MOST_OPS} or less'}")


def check_shrinking(option: str, seconds: int) -> None:
    if not 0 <= seconds <= MOST_SHRINKING:
        raise UserError(f"{option}: {seconds}: expected 0 to {MOST_SHRINKING} seconds")


def check_in_flight(option: str, number: int) -> None:
    from moscope import _engine

    if not 1 <= number <= _engine.MOST_IN_FLIGHT:
        raise UserError(f"{option}: {number}: expected 1 to {_engine.MOST_IN_FLIGHT}")


def random_test(subject: Subject, ops: int, seed: int = 1, progress: Progress | None = None,
                watchdog_fs: int = WATCHDOG_FS, **request: Any) -> dict[str, Any]:
    """One run of the random test; the engine's answer (src/experiment/testing.hh). A protocol error is raised as `Broken`."""
    library = subject.protocol.checking()
    from moscope import _engine  # after what may build

    wanted = {**subject.request(ops, seed), **request}
    answer = _engine.run_random_test(subject.text, str(library), json.dumps(wanted), seed=seed,
                                     watchdog=subject.watchdog_fs(watchdog_fs), progress=progress)
    got: dict[str, Any] = json.loads(answer)
    if "protocol_error" in got:
        raise Broken(got["protocol_error"], got)
    return got


def document(subject: Subject, answer: dict[str, Any], seed: int) -> dict[str, Any]:
    """The answer as moscope.check/1."""
    return {
        "schema": SCHEMA,
        "ok": not answer["violations"],
        **{key: answer[key] for key in ("ops", "seconds", "reached", "declared", "unreached", "violations")},
        **({"stopped": True} if answer.get("stopped") else {}),
        **_identity(subject, seed),
        "checked_loads": answer["checked_loads"],
        "loads_per_second": answer["loads_per_second"],
        "accesses": {**answer["by_kind"], "device_reads": answer["device_reads"],
                     "device_writes": answer["device_writes"]},
    }


def together(documents: list[dict[str, Any]]) -> dict[str, Any]:
    """The documents of runs with several cache sizes as one; a transition is reached if one of them reached it."""
    first, *rest = documents
    if not rest:
        return first
    never = [name for name in first["unreached"] if all(name in other["unreached"] for other in rest)]
    total = {key: sum(d[key] for d in documents) for key in ("ops", "seconds", "checked_loads")}
    return {
        **first, **total, "ok": all(d["ok"] for d in documents), "caches": "mixed",
        **({"stopped": True} if any(d.get("stopped") for d in documents) else {}),
        "unreached": never, "reached": first["declared"] - len(never),
        "violations": [text for d in documents for text in d["violations"]],
        "loads_per_second": total["checked_loads"] / total["seconds"] if total["seconds"] else 0.0,
        "accesses": {kind: sum(d["accesses"][kind] for d in documents) for kind in first["accesses"]},
    }


def failed_document(subject: Subject, error: Broken, seed: int) -> dict[str, Any]:
    """The document for a protocol that broke: the error precedes the violations."""
    violations = [f"{error.kind}: {error}", *error.answer["violations"]]
    return {**document(subject, {**error.answer, "violations": violations}, seed), "protocol_error": str(error)}


def _identity(subject: Subject, seed: int) -> dict[str, Any]:
    return {"protocol": subject.protocol.name, "machine": subject.machine["name"],
            "cores": subject.machine["cores"], "chips": subject.machine["chips"], "homes": subject.homes,
            "caches": subject.caches, "seed": seed, "left_out": subject.abilities.left_out()}
