# SPDX-License-Identifier: BSD-3-Clause
"""The document of a trace (moscope.trace/1): what the engine recorded, with names, cycles and checks.

Every time in it is an integer of femtoseconds; `clock.core_period_fs` (numerator, denominator) turns them into core
cycles. The segments of an access add up to its latency exactly, or the document is not made.
"""

from typing import Any

from moscope import patience
from moscope.config.bindings import role_by_name, roles_of
from moscope.errors import FOUND, OK, ProtocolError, UserError
from moscope.experiment import Phase, Subject, check_segments
from moscope.schema.constants import FS_PER_NS, LINE
from moscope.traces.remarks import place_in_order, remarks
from moscope.traces.script import WORD_BYTES, ScriptAccess

Document = dict[str, Any]
# A request of a checked script that is older than this is stuck: the scripts have few accesses, so no request waits that long for
# others.
CHECKED_WATCHDOG_FS = 200_000_000_000
# The values that are unknown for an access that an error has interrupted.
UNFINISHED: dict[str, Any] = {"latency_fs": None, "latency_ns": None, "latency_cycles": None, "segments": [], "hops": None,
                              "supplier": None, "supplier_number": None, "supplier_chip": None, "supplier_state": None, "probes": 0,
                              "value": None}


def script_phase(steps: list[list[ScriptAccess]], checked: bool = False) -> Phase:
    """The engine's phase (src/experiment/script.hh). `checked`: a wrong value ends it."""
    accesses = [a for step in steps for a in step]
    delays = [{"access": i, "message": d.message, "to": d.to, "n": d.n, "fs": d.fs}
              for i, a in enumerate(accesses) for d in a.delays]
    return {"kind": "script", "trace": True, "check": checked, **({"message_delays": {"list": delays}} if delays else {}),
            "steps": [[described(a) for a in step] for step in steps]}


def described(a: ScriptAccess) -> dict[str, Any]:
    """An access as the engine's phase has it."""
    return {("device" if a.device else "core"): a.core, "op": a.op, "address": a.address,
            **({"at": a.at} if a.at else {}), **({} if a.size is None else {"size": a.size})}


def has_delays(steps: list[list[ScriptAccess]]) -> bool:
    return any(a.delays for step in steps for a in step)


def exit_code(document: Document) -> int:
    """The exit code of a command for the trace of a checked script: as `protocol check`, a protocol error counts more than a violation."""
    if document.get("protocol_error"):
        return ProtocolError.exit_code
    return FOUND if document.get("violations") else OK


def _lacks(subject: Subject, access: str) -> UserError:
    return UserError(f"trace script: the protocol {subject.protocol} has no {access}: expected another operation, or another protocol")


def run_script(subject: Subject, steps: list[list[ScriptAccess]], script: str, checked: bool = False) -> Document:
    """Runs the accesses on a fresh machine, everything recorded. `checked` needs a subject with the checking library: the document
    then has `violations`, and `protocol_error` if one ended the run. Scripts with delays need a subject that is prepared for them."""
    accesses = [a for step in steps for a in step]
    return with_remarks(document(subject, accesses, script, run_phase(subject, accesses, script_phase(steps, checked))), accesses)


def run_phase(subject: Subject, accesses: list[ScriptAccess], phase: Phase) -> dict[str, Any]:
    """The engine's answer to a phase of these accesses; UserError for one that the protocol lacks."""
    from moscope.protocol.check import abilities_of

    ops, have = {a.op for a in accesses}, abilities_of(subject.interface, subject.elaborated, subject.own)
    if any(a.device for a in accesses) and all(roles_of(m).role != "dma" for m in subject.interface["machines"]):
        raise UserError(f"trace script: the protocol {subject.protocol} has no DMA machine for accesses of devices: expected accesses "
                        "of cores, or another protocol")
    if "nt" in ops and have.nt_store == "none":
        raise _lacks(subject, "non-temporal store")
    if "ldu" in ops and not have.uncached_load:
        raise _lacks(subject, "uncached load")
    try:
        return subject.run([phase], watchdog=CHECKED_WATCHDOG_FS if phase["check"] else patience.EXPERIMENT_FS)[-1]
    except ProtocolError as error:
        if "flush" in ops and "flush" in str(error).lower():
            raise _lacks(subject, "flush") from error
        raise


def walk_document(subject: Subject, core: int, result: dict[str, Any]) -> Document:
    """The document of a recorded walk: a chain of loads of one core, each a step of its own."""
    log = result["streams"][0]["log"]
    accesses = [ScriptAccess(core, a["op"], int(a["address"], 16), a["address"]) for a in log]
    seen = [{"id": i, "step": i, "core": core, **a, "value": None} for i, a in enumerate(log)]
    return document(subject, accesses, "; ".join(a.text for a in accesses), {**result, "accesses": seen})


def document(subject: Subject, accesses: list[ScriptAccess], script: str, result: dict[str, Any]) -> Document:
    made: Document = {
        "schema": "moscope.trace/1",
        "machine": subject.machine.name,
        "protocol": subject.protocol,
        "script": script,
        "seed": subject.seed,
        "clock": {"core_period_fs": [subject.period.numerator, subject.period.denominator]},
        "vnets": vnet_types(subject.interface),
        "permissions": {m["type"]: {s["name"]: s["permission"] for s in m["states"]} for m in subject.interface["machines"]},
        "accesses": [],
    }
    made |= {key: result[key] for key in ("violations", "protocol_error") if key in result}
    found = values_found(result["accesses"])
    for access, seen in zip(accesses, result["accesses"], strict=True):
        seen = {"size": access.bytes, "value_of": found.get(seen["id"]), **seen, "text": access.text, "line": access.name,
                "home": access.address // subject.machine.memory_per_node.bytes}
        if seen["done"] is None:
            made["accesses"].append({**seen, **UNFINISHED})
            continue
        check_segments(f"trace: {access.text}", seen["latency_fs"], seen["segments"])
        made["accesses"].append({
            **seen,
            "latency_ns": seen["latency_fs"] / FS_PER_NS,
            "latency_cycles": subject.cycles(seen["latency_fs"]),
            "segments": [{**s, "cycles": subject.cycles(s["fs"])} for s in seen["segments"]],
        })
    roles = {m["type"]: roles_of(m).role for m in subject.interface["machines"]}
    taking_part = {t["controller"] for t in result["transitions"]}
    taking_part |= {m["from"] for m in result["messages"]} | {d["to"] for m in result["messages"] for d in m["deliveries"]}
    made["controllers"] = [{**c, **_own_role(c["machine"], roles)} for c in result["controllers"] if c["name"] in taking_part]
    made["messages"] = result["messages"]
    made["transitions"] = result["transitions"]
    return made


def with_remarks(made: Document, accesses: list[ScriptAccess]) -> Document:
    """The document with remarks on each access, such as false sharing."""
    messages, transitions = _by_access(made["messages"]), _by_access(made["transitions"])  # else the time is quadratic in the accesses
    for access, scripted in zip(made["accesses"], accesses, strict=True):
        own = {"messages": messages.get(access["id"], []), "transitions": transitions.get(access["id"], [])}
        access["remarks"] = remarks({**made, **own}, access, scripted.delays)
    return made


def _by_access(events: list[dict[str, Any]]) -> dict[int | None, list[dict[str, Any]]]:
    found: dict[int | None, list[dict[str, Any]]] = {}
    for event in events:
        found.setdefault(event["access"], []).append(event)
    return found


WRITES = ("st", "nt", "rmw")
READS = ("ld", "if", "ldu", "rmw")


def values_found(accesses: list[dict[str, Any]]) -> dict[int, int]:
    """By access that reads, the last access that wrote one of its bytes; -1: all bytes have the initial value of memory. Bytes are
    transferred when an access is done."""
    initial = (-1, -1)
    writer: dict[int, tuple[int, int]] = {}  # by byte: place in the order of accesses, and number, of the access that wrote it last
    found: dict[int, int] = {}
    for n, a in enumerate(sorted((a for a in accesses if a["done"] is not None), key=place_in_order)):
        at = int(a["address"], 16)
        places = range(at, at + a.get("size", min(WORD_BYTES, LINE - at % LINE)))
        if a["op"] in READS:
            found[a["id"]] = max(writer.get(place, initial) for place in places)[1]
        if a["op"] in WRITES:
            writer |= dict.fromkeys(places, (n, a["id"]))
    return found


def _own_role(machine_type: str, roles: dict[str, str]) -> dict[str, str]:
    """The role of a machine in the protocol, if it differs from the usual role of its type."""
    return {} if roles[machine_type] == role_by_name(machine_type) else {"role": roles[machine_type]}


def role_of(controller: dict[str, Any]) -> str:
    return str(controller.get("role", role_by_name(controller["machine"])))


def is_home(controller: dict[str, Any]) -> bool:
    return role_of(controller) == "home"


def vnet_types(interface: dict[str, Any]) -> dict[str, str]:
    """What each virtual network carries, by its number."""
    return {str(b["vnet"]): str(b["vnet_type"]) for m in interface["machines"] for b in m["buffers"]
            if b["network"] and b["vnet"] is not None}
