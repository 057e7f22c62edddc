# SPDX-License-Identifier: BSD-3-Clause
"""The speed of the memory system's simulation, per second of host processor time: inline L1 hits, misses served by the L3,
DRAM misses at the greatest distance, checked loads of the random tester, and what a miss costs as more cores take part.

Suppliers and link crossings are checked: if too few accesses of a load are of its kind, it has no figure. Figures are medians
of several runs on fresh machines.
"""

import statistics
from collections.abc import Callable
from functools import partial
from typing import Any

from moscope.cli import Shared
from moscope.config import machine_names
from moscope.errors import MoscopeError, SimulatorBug, UserError
from moscope.experiment import Phase, Subject, prepare
from moscope.latencies.rows import cache_sizes
from moscope.schema.constants import LINE
from moscope.wording import number

MIB = 1 << 20
SCHEMA = "moscope.bench.memory/1"
# The share of a load's accesses that must be of its kind.
PURE = 0.97
# The goals that the project has set itself: at least this many per second on opteron48, and at most this growth of the cost of a
# miss with more cores.
LEAST = {"l1_hits_per_s": 100e6, "l3_misses_per_s": 2e6, "dram3_misses_per_s": 0.5e6, "tester_loads_per_s": 50e3}
MOST_GROWTH = 1.25
COST_CORES = (8, 16, 24, 32, 40, 48)
Say = Callable[[str], None]


class Bench:
    """The loads, each `scale` times its usual length."""

    def __init__(self, subject: Subject, scale: float, runs: int, say: Say, threads: int = 1, sets: list[str] | None = None,
                 warm_passes: int = 3) -> None:
        self.subject, self.scale, self.runs, self.say, self.threads = subject, scale, runs, say, threads
        self.warm_passes = warm_passes  # of each core over its buffer, before hits in the L2 and the L3 are counted
        self.machine, self.sets = subject.machine, sets or []
        self.node_bytes = self.machine.memory_per_node.bytes
        self.per_chip = int(self.machine.cores_per_chip)
        self.units = 0  # accesses of the last engine call, its warm-up included; checked loads for the tester

    def scaled(self, n: int) -> int:
        return max(64, int(n * self.scale))

    def median(self, name: str, once: Callable[[], float]) -> float:
        figures = []
        for run in range(self.runs):
            figures.append(once())
            self.say(f"{name}, run {run + 1} of {self.runs}: {figures[-1]:,.0f}")
        return statistics.median(figures)

    # --- the loads ---

    def l1_hits(self) -> float:
        """One core on its fiber, loading word by word from half of its first-level cache."""
        size = cache_sizes(self.subject)[0][1] // 2
        buffer = max(LINE, 1 << (size.bit_length() - 1))
        loads = self.units = self.scaled(60_000_000)
        result = self.subject.run([{"kind": "hits", "core": 0, "base": 0, "bytes": buffer, "loads": loads}])[0]
        if result["slow"] > 2 * buffer // LINE:
            raise self._impure(f"bench: {result['slow']} of {loads} loads that should hit the L1 did not")
        return float(loads / result["host_s"])

    def l2_hits(self) -> float:
        """The cores of one chip, each walking its own buffer, which is twice the size of its first-level cache."""
        buffer = 2 * cache_sizes(self.subject)[0][1] // LINE * LINE
        streams = [{"core": c, "ranges": [[c * 2 * buffer, buffer]]} for c in range(self.per_chip)]
        phase: Phase = {"kind": "loads", "streams": streams, "warm": self.warm_passes * buffer // LINE,
                        "accesses": self.scaled(400_000 // self.per_chip)}
        return self._misses(phase, "a cache", lambda s: int(s["done"] - s["suppliers"].get("Directory", 0)))

    def l3_misses(self) -> float:
        """The cores of one chip for each host thread, each walking its own buffer. The buffers of a chip together exceed its L1
        and L2 caches, but fit into these and the L3."""
        sizes = dict(cache_sizes(self.subject))
        if "L3" not in sizes:
            raise UserError(f"bench memory: the protocol {self.subject.protocol} has no L3: expected one that has, such as MOESI_HTAssist")
        own = sum(size for level, size in sizes.items() if level != "L3")
        buffer = (own + sizes["L3"] // (2 * self.per_chip)) // LINE * LINE
        chips = [t * self.machine.chips // self.threads for t in range(min(self.threads, self.machine.chips))]
        streams = [{"core": chip * self.per_chip + c, "ranges": [[chip * self.node_bytes + c * 2 * buffer, buffer]]}
                   for chip in chips for c in range(self.per_chip)]
        phase: Phase = {"kind": "loads", "streams": streams, "warm": self.warm_passes * buffer // LINE,
                        "accesses": self.scaled(400_000 // self.per_chip)}
        return self._misses(phase, "L3", lambda s: int(s["suppliers"].get("L3Cache", 0)))

    def dram_far(self) -> float:
        """Cores that have a node at the greatest distance of the machine, each walking untouched memory of such nodes."""
        hops = self.machine.hops()
        farthest = max(map(max, hops))
        streams: list[dict[str, Any]] = []
        for chip, row in enumerate(hops):
            nodes = [n for n, d in enumerate(row) if d == farthest]
            for i in range(self.per_chip if nodes else 0):
                core = chip * self.per_chip + i
                streams.append({"core": core, "ranges": [[self._region(n, core), self._region_bytes()] for n in nodes]})
        count = self.scaled(240_000 // len(streams))
        phase = {"kind": "loads", "streams": streams, "warm": count // 10, "accesses": count}
        # Request and answer each cross all links of the path.
        return self._misses(phase, f"DRAM at {farthest} hops", lambda s: int(s["hops"].get(str(2 * farthest), 0)))

    def tester(self) -> float:
        """Checked loads of the random tester, all cores, tiny caches, data in the messages."""
        from moscope.protocol import check as protocol_check

        shared = protocol_check.prepare(self.subject.protocol, self.machine.name, self.sets, report=self.say)
        answer = protocol_check.random_test(shared, self.scaled(1_000_000), self.subject.seed)
        if answer["violations"]:
            raise SimulatorBug(f"bench: the random tester found a violation: {answer['violations'][0]}")
        self.units = int(answer["checked_loads"])
        return float(answer["loads_per_second"])

    def cost_per_miss(self) -> dict[str, float]:
        """Host nanoseconds for a DRAM miss, by the number of cores that take part, spread over the chips; each reads
        untouched memory of all nodes in turn."""
        costs: dict[str, float] = {}
        chips = int(self.machine.chips)
        for cores in [c for c in COST_CORES if c <= self.machine.cores] or [self.machine.cores]:
            chosen = [i % chips * self.per_chip + i // chips for i in range(cores)]
            streams = [{"core": c, "ranges": [[self._region(n, c), self._region_bytes()] for n in range(chips)]} for c in chosen]
            count = self.scaled(160_000 // cores)
            phase = {"kind": "loads", "streams": streams, "warm": count // 10, "accesses": count}
            misses = partial(self._misses, phase, "DRAM", lambda s: int(s["suppliers"].get("Directory", 0)))
            rate = self.median(f"DRAM misses per second, {number(cores, 'core')}", misses)
            costs[str(cores)] = 1e9 / rate
        return costs

    # --- common parts ---

    def _region_bytes(self) -> int:
        return self.node_bytes // self.machine.cores // 2 // LINE * LINE

    def _region(self, node: int, core: int) -> int:
        """The base address of a core's own part of a node's memory; cores begin at different sets and banks."""
        region = self.node_bytes // self.machine.cores // 4096 * 4096
        return node * self.node_bytes + core * region + core * 37 * 4096 % (region // 4) // 4096 * 4096

    def _misses(self, phase: Phase, what: str, of_kind: Callable[[dict[str, Any]], int]) -> float:
        result = self.subject.run([phase], self.threads)[0]
        done = sum(s["done"] for s in result["streams"])
        self.units = done + phase["warm"] * len(result["streams"])
        right = sum(of_kind(s) for s in result["streams"])
        if right < PURE * done:
            raise self._impure(f"bench: only {right} of {done} accesses were served as {what}")
        return float(done / result["host_s"])

    def _impure(self, text: str) -> MoscopeError:
        """The error of a load with too few accesses of its kind. It is the simulator's only if machine and protocol are its own."""
        if not self.subject.own:
            return UserError(f"{text}: the protocol {self.subject.protocol} serves these accesses differently: expected another "
                             "protocol, or another load")
        if self.sets or self.machine.name not in machine_names():
            return UserError(f"{text}: the machine {self.machine.name} serves these accesses differently: expected more memory, no "
                             "prefetchers, or replacement by lru")
        return SimulatorBug(text)


def run(shared: Shared, runs: int, scale: float, threads: int = 1) -> dict[str, Any]:
    """All figures and which miss their bars, as moscope.bench.memory/1."""
    subject = prepare(shared)
    bench = Bench(subject, scale, runs, shared.say, threads, shared.sets)
    document: dict[str, Any] = {
        "schema": SCHEMA, "machine": subject.machine.name, "protocol": subject.protocol, "cores": subject.machine.cores,
        "runs": runs, "threads": threads,
        "l1_hits_per_s": bench.median("L1 hits per second", bench.l1_hits),
        "l3_misses_per_s": bench.median("L3 misses per second", bench.l3_misses),
        "dram3_misses_per_s": bench.median("far DRAM misses per second", bench.dram_far),
        "far_hops": max(map(max, subject.machine.hops())),
        "tester_loads_per_s": bench.median("tester loads per second", bench.tester),
        "cost_per_miss_ns": bench.cost_per_miss(),
    }
    costs = document["cost_per_miss_ns"].values()
    document["cost_growth"] = max(costs) / min(costs)
    missed = [name for name, least in LEAST.items() if document[name] < least]
    missed += ["cost_growth"] if document["cost_growth"] > MOST_GROWTH else []
    return {**document, "ok": not missed, "missed": missed, "bars": {**LEAST, "cost_growth": MOST_GROWTH}}
