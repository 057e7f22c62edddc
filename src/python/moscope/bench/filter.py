# SPDX-License-Identifier: BSD-3-Clause
"""The directory-thrash experiment: as much data as all caches together hold, homed on one node against spread evenly
over all nodes.

A probe filter has entries for a fixed number of lines, and only for lines of its own node, even if the other nodes'
filters are almost empty. When all the data that the machine has cached belong to one node, its filter has room for
only a fraction of them: it keeps replacing entries, and each replacement invalidates a line in a cache that still
needs it. Every core loads lines of its own share of the data, at random, with as many misses in flight as the machine
allows. Counting begins when every share has been walked through once and random loads have replaced what the walk left.
All cores run until the measurement ends: if each executed the same number of loads, the cores near the home would finish
early, and the data of the others alone may fit. A run with the data on one node and the filter off separates the slowdown
that the filter causes from the slowdown of one node serving all requests.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from moscope import paths
from moscope.errors import UserError
from moscope.experiment import Phase, Subject, check_done, slowness_is_a_user_error
from moscope.schema.constants import FS_PER_NS, LINE

if TYPE_CHECKING:
    from analysis.filters import Filter

SCHEMA = "moscope.bench.filter/1"
# The part of the accesses from which the length of the measurement is estimated, and the part that precedes it, uncounted.
ESTIMATED_FROM, WARM = 0.1, 0.5


@dataclass(frozen=True)
class Placement:
    """The nodes at which the data are homed, and the results."""

    name: str
    nodes: int
    accesses: int
    ns_per_access: float  # simulated time over the mean number of accesses of a core
    latency_cycles: float
    filter_lookups: int
    filter_evictions: int
    back_invalidations: int  # lines that caches lost because their filter entry was replaced
    probes: int
    suppliers: dict[str, int]

    def as_json(self) -> dict[str, Any]:
        return {**self.__dict__, "evictions_per_1000": 1000 * self.filter_evictions / self.accesses}


def print_placements(document: dict[str, Any]) -> None:
    """Prints the table for people, with the columns that docs/calibration.md explains."""
    from rich import box
    from rich.table import Table

    from moscope import terminal

    print(f"{document['machine']}, {document['protocol']}: {document['bytes'] / 2**20:.1f} MiB in use, caches hold "
          f"{document['cached_bytes'] / 2**20:.1f} MiB, a node's filter covers {document['filter_bytes'] / 2**20:.1f} MiB", flush=True)
    table = Table(box=box.SIMPLE_HEAD)
    for heading in ("homed on", "covered by filters", "ns per load of a core", "latency, cycles", "filter entries replaced per 1000 loads",
                    "lines lost per 1000 loads", "probes per 1000 loads"):
        table.add_column(heading, justify="left" if heading == "homed on" else "right", no_wrap=heading == "homed on")
    for p in document["placements"]:
        coverage = document["coverage"].get(p["name"])
        counts = (p["filter_evictions"], p["back_invalidations"], p["probes"])
        table.add_row(p["name"], "" if coverage is None else f"{coverage:.2f}", f"{p['ns_per_access']:.1f}", f"{p['latency_cycles']:.0f}",
                      *(f"{1000 * n / p['accesses']:.0f}" for n in counts))
    terminal.print_table(terminal.console(), table)
    print(f"time per load with one home node: {document['slowdown']:.2f} times that with all nodes, and "
          f"{document['slowdown_by_filter']:.2f} times that with one home node and the filter off "
          f"({document['placements'][0]['accesses']:,} loads)")


def cached_bytes(subject: Subject) -> int:
    """The capacity of all caches together, without the instruction caches, which hold no data."""
    total = 0
    for controller in subject.elaborated["controllers"]:
        for name, value in controller["params"].items():
            if isinstance(value, dict) and "filter" not in name.lower() and "icache" not in name.lower():
                total += int(value["bytes"])
    return total


def filter_bytes(subject: Subject) -> int:
    """Memory that one node's filter covers."""
    entries = [int(c["sets"]) * int(c["ways"]) for c in subject.caches("filter")]
    return max(entries, default=0) * LINE


def decisions(subject: Subject) -> "Filter":
    """What the transitions of the homes mean, from the same file as in reports of runs."""
    paths.import_analysis()
    from analysis.filters import of_protocol

    found = of_protocol(subject.protocol)
    if found is None:
        raise UserError(f"bench filter: {subject.protocol}: no {subject.protocol}.filter.toml gives the meaning of its transitions: "
                        "expected a protocol with this file")
    return found


def compare(subject: Subject, without: Subject, total: int | None, accesses: int, say: Any) -> dict[str, Any]:
    """Measures both placements, and how much slower the first one is. `without` is the same machine with its filter off."""
    if not subject.machine.probe_filter.enabled or not filter_bytes(subject):
        raise UserError(f"bench filter: {subject.machine.name} with {subject.protocol} has no probe filter: expected a machine "
                        "with one, such as opteron48")
    decisions(subject)
    machine = subject.machine
    total = cached_bytes(subject) if total is None else total
    if total > machine.memory_per_node.bytes // 2:
        raise UserError(f"--bytes: {total} bytes do not fit into half of a node's memory: expected at most "
                        f"{machine.memory_per_node.bytes // 2}")
    if total < machine.cores * machine.chips * LINE:
        raise UserError(f"--bytes: {total} bytes are too few for every core to have lines of every node: expected at least "
                        f"{machine.cores * machine.chips * LINE}")
    results = []
    for name, nodes in (("one node", 1), ("all nodes", int(machine.chips))):
        say(f"{total / 2**20:.1f} MiB homed on {name}")
        results.append(place(subject, name, nodes, total, accesses))
    say(f"{total / 2**20:.1f} MiB homed on one node, filter off")
    results.append(place(without, "filter off", 1, total, accesses))
    one, spread, off = results
    return {
        "schema": SCHEMA, "machine": machine.name, "protocol": subject.protocol, "bytes": total,
        "cached_bytes": cached_bytes(subject), "filter_bytes": filter_bytes(subject),
        "coverage": {"one node": filter_bytes(subject) / total, "all nodes": filter_bytes(subject) * int(machine.chips) / total},
        "placements": [r.as_json() for r in results],
        "slowdown": one.ns_per_access / spread.ns_per_access,
        "slowdown_by_filter": one.ns_per_access / off.ns_per_access,
    }


def place(subject: Subject, name: str, nodes: int, total: int, accesses: int) -> Placement:
    machine = subject.machine
    share = total // machine.cores // (nodes * LINE) * LINE  # a core's part in each node
    size = machine.memory_per_node.bytes
    base = {"in_flight": int(machine.outstanding_misses)}
    streams = [{"core": c, **base, "ranges": [[n * size + c * share, share] for n in range(nodes)]} for c in range(machine.cores)]
    fill = {"kind": "loads", "streams": streams, "accesses": share * nodes // LINE}
    at_random = {"kind": "loads", "streams": [{**s, "order": "random", "seed": subject.seed * 1000 + i} for i, s in enumerate(streams)]}
    count = max(100, accesses // machine.cores)
    with slowness_is_a_user_error(f"bench filter: {name}"):
        window = time_of(count * machine.cores, subject, [fill, {**at_random, "accesses": max(100, int(ESTIMATED_FROM * count))}])
        counted = {**at_random, "warm_fs": int(WARM * window), "window_fs": window, "statistics": True}
        result = subject.run([fill, counted])[1]
    done = sum(s["done"] for s in result["streams"])
    check_done(f"bench filter: {name}", done, window)
    suppliers: dict[str, int] = {}
    for s in result["streams"]:
        for who, n in s["suppliers"].items():
            suppliers[who] = suppliers.get(who, 0) + n
    decided = decisions(subject)
    homes = _events(result["statistics"], decided.machine)
    caches = _events(result["statistics"], "L1Cache", "L3Cache")
    lost = {k: n for k, n in caches.items() if k.split(".")[1] == "Probe_Inv" and k.split(".")[0] not in ("I", "NP", "C", "CV")}
    return Placement(
        name, nodes, done, window * machine.cores / done / FS_PER_NS,
        subject.cycles(sum(s["latency_fs"] for s in result["streams"])) / done,
        filter_lookups=decided.requests(homes), filter_evictions=decided.replaced(homes),
        back_invalidations=sum(lost.values()),
        probes=sum(n for k, n in _events(result["statistics"], "L3Cache").items() if k.split(".")[1].startswith("Probe")),
        suppliers=suppliers,
    )


def time_of(accesses: int, subject: Subject, phases: list[Phase]) -> int:
    """The time that this many accesses of all cores together take, estimated from the latencies in the last of these phases."""
    streams = subject.run(phases)[-1]["streams"]
    return int(accesses / sum(int(subject.machine.outstanding_misses) * s["done"] / s["latency_fs"] for s in streams))


def _events(statistics: dict[str, Any], *machines: str) -> dict[str, int]:
    """Transitions "STATE.EVENT" of all controllers of these machines."""
    total: dict[str, int] = {}
    for controller in statistics["controllers"]:
        if controller["name"].rsplit("-", 1)[0] in machines:
            for name, n in controller["transitions"].items():
                total[name] = total.get(name, 0) + n
    return total
