# SPDX-License-Identifier: BSD-3-Clause
"""An episode of a run (episodes.parquet, docs/run-directory.md) as a history: the accesses of a line with their functions. A run records
neither messages nor transitions, so the history has none."""

import json
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

from moscope import jsonio, paths
from moscope.config import ConfigError, Machine, Size, blamed, elaborate, load_machine
from moscope.errors import UserError, unknown_name
from moscope.experiment import Subject
from moscope.parquet import held, unreadable
from moscope.runs import shape
from moscope.schema.constants import FS_PER_NS, LINE
from moscope.schema.enumerations import ACCESS_KIND, DEVICE, SEGMENT
from moscope.schema.records import TRANSACTIONS
from moscope.stepping import machine as drawing
from moscope.stepping.history import SCHEMA, Document
from moscope.traces.document import vnet_types
from moscope.traces.script import OPS

FILE = "episodes.parquet"
SCRIPT_OPS = dict(zip(ACCESS_KIND.members, OPS, strict=True))
# Columns that a history is made of.
USED = {*SEGMENT.names, "issued", "latency", "exposed", "line", "name", "name_kind", "va", "pc", "function", "process", "writer",
        "writer_pc", "writer_function", "hops", "core", "kind", "class", "supplier", "supplier_number", "supplier_chip", "supplier_state",
        "user", "probes"}
NOTE = ("A run records the accesses that leave the first-level cache, with the time of each in each part of the machine. It records no "
        "messages and no states, so none are shown.")


@dataclass(frozen=True)
class Episode:
    """Rows of one name at one point."""

    folder: Path  # of the run
    point: str
    name: str
    kind: str
    rows: list[dict[str, Any]]


def read_run(folder: Path) -> dict[str, Any]:
    try:
        found = jsonio.loads((folder / "run.json").read_text(encoding="utf-8"))
    except OSError as error:
        raise UserError(f"--run: {folder}: {error.strerror} (run.json): expected the folder of a run, or of one of its points") from None
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise UserError(f"--run: {folder}/run.json: is damaged: expected a JSON object")
    if fault := shape.fault(found):
        raise UserError(f"--run: {folder}/run.json: {fault}")
    if "config" not in found:
        raise UserError(f"--run: {folder}: is a run on gem5, which records no episodes: expected one of the embedded engine")
    if not (found["config"] or {}).get("machine"):
        raise UserError(f"--run: {folder}/run.json: its config has no machine: expected that of the run")
    run: dict[str, Any] = found
    return run


def find(folder: Path, name: str | None) -> Episode:
    """The episode of a name, or of an object or field of that name; without a name, the hottest one. In a run with several points, the
    point with the most cores is chosen."""
    if not (folder / "run.json").exists() and not (folder / "point.json").exists():
        raise UserError(f"--run: {folder}: holds no run.json and no point.json: expected the folder of a run, or of one of its points")
    run, points = (folder, sorted((folder / "points").glob("*"))) if (folder / "run.json").exists() else (
        folder.absolute().parent.parent, [folder])
    read_run(run)
    found = [e for point in points for e in episodes_of(run, point)]
    if not found:
        raise UserError(f"--run: {folder}: has no episodes ({FILE}): expected a run of this version with lines that move between cores")
    chosen = [e for e in found if name in (None, e.name)] or _meant(folder, str(name), found)
    if not chosen:
        raise unknown_name("--line", "name with an episode", str(name), (), first=(e.name for e in found))
    return max(chosen, key=lambda e: _cores(run / "points" / e.point))  # of several with as many cores, the first one, which is the hottest


def _meant(folder: Path, name: str, found: list[Episode]) -> list[Episode]:
    """Episodes of lines that a user calls by another name than the run does, as for `report --line`."""
    paths.import_analysis()
    from analysis import RunDirectoryError, load
    from analysis.maps import asked

    try:
        points = load(folder, copied=False).points
        named = {(p.name, *one) for p in points for one in asked.names(p, name)}
    except RunDirectoryError:
        return []
    entries = {(p.name, *key): entry for p in points for key, entry in p.database.entries(p.name).items()}
    return [e for e in found if named & {(e.point, e.name, e.kind), (e.point, entries.get((e.point, e.name, e.kind)), e.kind)}]


def _cores(point: Path) -> int:
    try:
        return int(_described_point(point)["cores"])
    except (ValueError, KeyError):
        return 0


def _described_point(point: Path) -> dict[str, Any]:
    try:
        return dict(jsonio.loads((point / "point.json").read_text(encoding="utf-8")))
    except (OSError, ValueError):
        return {}


def _node_bytes(episode: Episode, machine: Machine) -> int:
    """The memory of a node in the run. It mostly differs from the machine's description, because a workload determines how much
    it needs."""
    point = _described_point(episode.folder / "points" / episode.point)
    for given in read_run(episode.folder)["config"].get("points") or []:
        if "memory_per_node" in given and all(given.get(key) == point.get(key) for key in ("workload", "kernel", "cores")):
            return int(Size(given["memory_per_node"]).bytes)
    return int(machine.memory_per_node.bytes)


def episodes_of(run: Path, point: Path) -> list[Episode]:
    """The episodes of a point, the hottest name first."""
    file = point / FILE
    if not file.is_file():
        return []
    import pyarrow
    from pyarrow import parquet

    try:
        table = parquet.read_table(file, partitioning=None)
        rows = table.to_pylist()
    except (OSError, pyarrow.ArrowInvalid) as error:
        raise UserError(f"{file}: {str(error).splitlines()[0]}: expected the file that a run wrote") from None
    if missing := USED - set(table.column_names):
        raise UserError(f"{file}: has no column {min(missing)}: expected the file that a run wrote")
    if wrong := unreadable(file, held(TRANSACTIONS)):
        raise UserError(f"{file}: {wrong}: expected the file that a run wrote")
    groups: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for row in rows:
        groups.setdefault((str(row["name"]), str(row["name_kind"])), []).append(row)
    return [Episode(run, point.name, name, kind, found) for (name, kind), found in groups.items()]


def described(run: Path) -> Subject:
    """The run's machine with its protocol."""
    from moscope import buildproto

    config = read_run(run)["config"]
    sets = list(config.get("set") or [])
    machine = load_machine(config["machine"], sets)
    built = buildproto.ensure_protocol(str(machine.protocol))
    interface = json.loads(built.interface.read_text(encoding="utf-8"))
    try:
        return Subject(machine, interface, elaborate(machine, interface), Path(), 0, tuple(sets))
    except ConfigError as error:
        raise blamed(error, config["machine"], sets) from None


def history_of(episode: Episode, subject: Subject | None = None) -> Document:
    """The episode as a history. `subject`: the result of `described` for the run."""
    subject = subject or described(episode.folder)
    machine, interface = subject.machine, subject.interface
    start = min(r["issued"] for r in episode.rows)
    line = episode.rows[0]["line"] // LINE * LINE
    home = line // _node_bytes(episode, machine)
    accesses = [_access(subject, home, episode, i, row, start) for i, row in enumerate(episode.rows)]
    cores = {a["core"] for a in accesses}
    suppliers = {f"{a['supplier']}-{a['supplier_number']}" for a in accesses}
    drawn = drawing.drawn(subject)
    return {
        "schema": SCHEMA,
        "spec": {"script": "", "machine": str(subject.machine.name), "protocol": None, "set": list(subject.sets), "seed": 0,
                 "added": [], "delays": []},
        "run": {"folder": str(episode.folder), "point": episode.point, "name": episode.name, "kind": episode.kind, "start_fs": start,
                "note": NOTE},
        "lines": [{"address": f"{line:#x}", "name": episode.name, "home": home}],
        "machine": drawn,
        "protocol": {"name": subject.protocol, "machines": [], "sources": {}},
        "trace": {
            "schema": "moscope.trace/1", "machine": machine.name, "protocol": subject.protocol,
            "script": f"{episode.name}, {episode.point}", "seed": 0,
            "clock": {"core_period_fs": [subject.period.numerator, subject.period.denominator]},
            "vnets": vnet_types(interface),
            "permissions": {m["type"]: {s["name"]: s["permission"] for s in m["states"]} for m in interface["machines"]},
            "accesses": accesses,
            "controllers": [{key: c[key] for key in ("name", "machine", "version", "chip", "core")} for c in drawn["controllers"]
                            if c["core"] in cores or c["name"] in suppliers],
            "messages": [], "transitions": [],
        },
        "changes": [],
    }


def _access(subject: Subject, home: int, episode: Episode, number: int, row: dict[str, Any], start: int) -> dict[str, Any]:
    """A row as an access of a trace, with the additional data of a run. Times count from the episode's first access."""
    fs = Fraction(row["latency"])
    op = SCRIPT_OPS[row["kind"]]
    writer = None if row["writer"] is None else "a device" if row["writer"] == DEVICE else f"core {row['writer']}"
    last = f", last written by {writer}" + (f" in {row['writer_function']}" if row["writer_function"] else "") if writer else ""
    address = row["line"] // LINE * LINE + (row["va"] % LINE if row["va"] else 0)
    return {
        "id": number, "step": number, "core": row["core"], "op": op, "address": f"{address:#x}",
        "issued": row["issued"] - start, "done": row["issued"] + row["latency"] - start, "latency_fs": row["latency"],
        "segments": [{"name": s, "fs": row[s], "cycles": subject.cycles(row[s])} for s in SEGMENT.names if row[s]],
        "hops": row["hops"], "supplier": row["supplier"], "supplier_number": row["supplier_number"], "supplier_chip": row["supplier_chip"],
        "supplier_state": row["supplier_state"], "probes": row["probes"], "value": None,
        "text": f"c{row['core']} {op} in {row['function'] or 'unknown code'}{last}", "line": episode.name,
        "home": home,
        "latency_ns": row["latency"] / FS_PER_NS, "latency_cycles": subject.cycles(fs),
        "run": {"function": row["function"], "pc": f"{row['pc']:#x}", "process": row["process"], "user": row["user"], "class": row["class"],
                "exposed_fs": row["exposed"], "writer": row["writer"], "writer_function": row["writer_function"],
                "writer_pc": f"{row['writer_pc']:#x}" if row["writer_pc"] else None},
    }
