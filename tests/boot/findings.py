# SPDX-License-Identifier: BSD-3-Clause
"""What guest/linux.sh printed, read and held against the machine description.

Each check returns the faults that it finds, so that a test shows all of them. The same checks run on QEMU's boots
for what QEMU can do, which keeps them honest.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass

from moscope.config import Machine

# What a healthy log does not hold. Upper case where the kernel writes it so: "report a bug" is no bug.
TROUBLE = re.compile(r"WARN|BUG|[Ll]ockup|LOCKUP|rcu.*(stall|detected)|RCU.*stall|TSC unstable|Unstable clock|TSC warp|unsynchronized"
                     r"|Oops|Call Trace|general protection|segfault|Hardware Error|invalid opcode|divide error"
                     r"|Spurious (APIC|interrupt)|nobody cared|not responding|failed to get a good estimate|soft lockup"
                     r"|does not load|moscope: .* holds neither")
# SLIT: a node itself, and what a link adds.
LOCAL, PER_HOP = 10, 6
# Linux on an 8431 of the paper's machine says so (facts: hwloc dumps); the ways are the part's, whatever the model of the
# machine has, because with them Linux arrives at that size (docs/processor.md).
L3_SIZE = "5118K"
L3_WAYS = 48
MODEL_NAME = "Six-Core AMD Opteron(tm) Processor 8431"


@dataclass(frozen=True)
class Findings:
    console: str
    sections: dict[str, list[str]]

    @staticmethod
    def of(console: str) -> "Findings":
        sections: dict[str, list[str]] = {}
        lines: list[str] = []
        for line in console.replace("\r", "").splitlines():
            if line.startswith("== "):
                lines = sections.setdefault(line[3:], [])
            elif not re.match(r"\[ *\d+\.\d+\]", line):  # the kernel's own lines may come in between
                lines.append(line)
        return Findings(console, sections)

    def lines(self, name: str) -> list[str]:
        return self.sections.get(name, [])


@dataclass(frozen=True)
class Expected:
    machine: Machine
    cores: int
    memory_per_node: int


Check = Callable[[Findings, Expected], list[str]]


def fault(what: str, got: object, wanted: object) -> list[str]:
    return [] if got == wanted else [f"{what}: {got!r} and not {wanted!r}"]


def finished(f: Findings, e: Expected) -> list[str]:
    return fault("the script's end", "end" in f.sections, True)


def processors(f: Findings, e: Expected) -> list[str]:
    return fault("nproc", f.lines("nproc"), [str(e.cores)])


def nodes_online(f: Findings, e: Expected) -> list[str]:
    return fault("nodes", f.lines("nodes"), [f"0-{e.machine.chips - 1}"])


def distances(f: Findings, e: Expected) -> list[str]:
    wanted = [" ".join(str(LOCAL + PER_HOP * h) for h in row) for row in e.machine.hops()]
    return fault("distances", f.lines("distances"), wanted)


def memory(f: Findings, e: Expected) -> list[str]:
    """Per node: all of it but what the kernel keeps for its page descriptors and, on one node, 64 MiB of bounce
    buffers (swiotlb); node 0 has kernel and firmware too."""
    faults = []
    totals = [int(m.group(1)) << 10 for line in f.lines("memory") if (m := re.search(r"MemTotal: +(\d+) kB", line))]
    faults += fault("nodes with memory", len(totals), int(e.machine.chips))
    for node, total in enumerate(totals):
        least = e.memory_per_node * 93 // 100 - ((160 if node == 0 else 64) << 20)
        if not least <= total <= e.memory_per_node:
            faults.append(f"node {node}: {total >> 10} kB of {e.memory_per_node >> 10} kB")
    return faults


def cores_of_nodes(f: Findings, e: Expected) -> list[str]:
    per_chip = int(e.machine.cores_per_chip)
    wanted = []
    for node in range(int(e.machine.chips)):
        first, last = node * per_chip, min(e.cores, (node + 1) * per_chip) - 1
        if first <= last:  # a node without cores has an empty list, of which grep prints nothing
            text = str(first) if first == last else f"{first}-{last}"
            wanted.append(f"/sys/devices/system/node/node{node}/cpulist:{text}")
    return fault("cores of nodes", f.lines("cores"), wanted)


def cpuinfo(f: Findings, e: Expected) -> list[str]:
    fields: dict[str, list[str]] = {}
    for line in f.lines("cpuinfo"):
        key, _, value = line.partition(":")
        fields.setdefault(key.strip(), []).append(value.strip())
    faults = fault("processors", fields.get("processor"), [str(n) for n in range(e.cores)])
    for key, value in (("vendor_id", "AuthenticAMD"), ("cpu family", "16"), ("model", "8"), ("model name", MODEL_NAME)):
        faults += fault(key, set(fields.get(key, [])), {value})
    return faults


def megahertz(f: Findings, e: Expected) -> list[str]:
    got = [float(line.partition(":")[2]) for line in f.lines("cpuinfo") if line.startswith("cpu MHz")]
    wanted = float(e.machine.core_clock.hertz) / 1e6
    return [f"cpu MHz: {mhz} and not {wanted}" for mhz in got if abs(mhz / wanted - 1) > 0.001]


def apic_ids(f: Findings, e: Expected) -> list[str]:
    """Eight identifiers per chip, of which six are in use."""
    got = [int(line.partition(":")[2]) for line in f.lines("cpuinfo") if line.startswith("apicid")]
    per_chip = int(e.machine.cores_per_chip)
    return fault("apicid", got, [n // per_chip * 8 + n % per_chip for n in range(e.cores)])


def caches(f: Findings, e: Expected) -> list[str]:
    """Kinds, sizes and ways as CPUID reports them, and the sharers of each: the cores of a chip share its L3 and nothing else."""
    found = dict(line.split(":", 1) for line in f.lines("caches") if ":" in line)
    base = "/sys/devices/system/cpu/"
    m = e.machine

    def kib(size: int) -> str:
        return f"{size >> 10}K"

    faults = []
    for index, level, kind, size, ways in (
            (0, "1", "Data", kib(m.l1d.size.bytes), m.l1d.ways), (1, "1", "Instruction", kib(m.l1i.size.bytes), m.l1i.ways),
            (2, "2", "Unified", kib(m.l2.size.bytes), m.l2.ways), (3, "3", "Unified", L3_SIZE, L3_WAYS)):
        at = f"{base}cpu0/cache/index{index}"
        for key, wanted in (("level", level), ("type", kind), ("size", size), ("ways_of_associativity", str(int(ways)))):
            faults += fault(f"cache {index} {key}", found.get(f"{at}/{key}"), wanted)
    per_chip = int(m.cores_per_chip)
    for core in range(e.cores):
        first = core // per_chip * per_chip
        last = min(first + per_chip, e.cores) - 1
        chip = str(first) if first == last else f"{first}-{last}"
        for index, name, sharers in ((0, "L1D", str(core)), (1, "L1I", str(core)), (2, "L2", str(core)), (3, "L3", chip)):
            faults += fault(f"{name} of core {core}", found.get(f"{base}cpu{core}/cache/index{index}/shared_cpu_list"), sharers)
    return faults


def clock(f: Findings, e: Expected) -> list[str]:
    return fault("clock source", f.lines("clock"), ["tsc"])


def healthy_log(f: Findings, e: Expected) -> list[str]:
    return [line for line in f.console.splitlines() if TROUBLE.search(line)]


def virtio(f: Findings, e: Expected) -> list[str]:
    missing = {"virtio_pci", "virtio_rng"} - set(f.lines("devices"))
    return [f"no {name}" for name in sorted(missing)]


# QEMU has one time-stamp counter per thread of its own making, no clocks of 2.4 GHz and other caches.
ANYWHERE: list[Check] = [finished, processors, nodes_online, distances, memory, cores_of_nodes, cpuinfo, virtio]
ALL: list[Check] = [*ANYWHERE, megahertz, apic_ids, caches, clock, healthy_log]


def faults(checks: list[Check], f: Findings, e: Expected) -> list[str]:
    return [line for check in checks for line in check(f, e)]
