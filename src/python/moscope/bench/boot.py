# SPDX-License-Identifier: BSD-3-Clause
"""How fast the whole machine runs on this host, compared with QEMU: the same kernel, initial file system, processors,
nodes and memory, one after the other; then a fixed amount of computing, system calls and processes (guest/bench.sh).

Host seconds are from the start of the simulator to the guest's power-off. The instructions per second of code that only
computes are counted between two lines of the script. QEMU runs on its single-threaded translator, as the model does.
"""

import resource
import time
from pathlib import Path
from typing import Any

from moscope.boot import engine, plan
from moscope.boot.session import STEP_MS, tail
from moscope.cli import Shared
from moscope.config import Machine, load_machine
from moscope.errors import GuestDied, SimulatorBug
from moscope.guest import qemu
from moscope.wording import number

SCHEMA = "moscope.bench.boot/1"
SCRIPT = Path(__file__).parents[1] / "guest" / "bench.sh"
BEGINS, ENDS, LAST = "bench: compute begins", "bench: compute ends", "bench: ends"
# The goals of the project: at most this many times QEMU's seconds, and at least this many million instructions per second.
MOST_RATIO, LEAST_MIPS = 5.0, 60.0
QEMU_SECONDS = 1800
# ACPI distances of a node to itself, and per link.
LOCAL, PER_HOP = 10, 6


def run(shared: Shared, cores: int | None, memory_per_node: str, say: Any) -> dict[str, Any]:
    """Both boots; moscope.bench.boot/1."""
    machine = load_machine(shared.machine, shared.sets)
    # Reported before the boots, which take long.
    qemu.ensure(say)
    planned = plan.make(shared, plan.Options(cores=cores, memory_per_node=memory_per_node, script=SCRIPT), machine)
    say(f"QEMU: {number(planned.config['cores'], 'core')}")
    before = _children_s()
    reference = run_qemu(planned, machine)
    qemu_cpu = _children_s() - before
    say(f"QEMU: {reference:.1f} s; now moscope")
    document = run_moscope(planned)
    ratio = document["moscope_s"] / reference
    ok = ratio <= MOST_RATIO and document["compute_mips"] >= LEAST_MIPS
    return {"schema": SCHEMA, "ok": ok, "cores": planned.config["cores"], "machine": machine.name,
            "kernel": planned.config["info"]["kernel"], "qemu_s": reference, "ratio": ratio, **document,
            "qemu_cpu_s": round(qemu_cpu, 3),
            "bars": {"ratio": MOST_RATIO, "compute_mips": LEAST_MIPS}}


def _children_s() -> float:
    """Processor seconds of the child processes that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def run_qemu(planned: plan.Plan, machine: Machine) -> float:
    """Host seconds of QEMU."""
    config = planned.config
    per_chip = int(machine.cores_per_chip)
    node_cores = [max(0, min(per_chip, config["cores"] - per_chip * n)) for n in range(planned.nodes)]
    distances = [[LOCAL + PER_HOP * h for h in row] for row in config["hops"]]
    guest = qemu.Guest(Path(config["kernel"]), Path(config["initrd"]), config["append"], node_cores, distances,
                       config["memory_per_node"])
    finished = qemu.run(guest, QEMU_SECONDS)
    if finished.status != 0 or LAST not in finished.console:
        raise SimulatorBug(f"bench boot: QEMU ended abnormally ({finished.status}):\n{tail(finished.console.encode())}")
    return round(finished.host_s, 3)


def run_moscope(planned: plan.Plan) -> dict[str, float]:
    """Host seconds of the model, in total and until the script began, and the instruction rate of the part that computes."""
    config = {**planned.config, "markers": [BEGINS, ENDS, plan.PANIC]}
    started, cpu = time.monotonic(), time.process_time()
    system = engine.create(config)
    at: dict[str, tuple[float, int]] = {}
    log = b""
    while True:
        answer = system.step(STEP_MS)
        log += system.console_output()
        now = time.monotonic() - started
        for text in (BEGINS, ENDS):
            if text.encode() in log and text not in at:
                at[text] = (now, int(system.stats()["instructions"]))
        if answer["state"] not in ("running", "marker") or plan.PANIC.encode() in log:
            break
    if answer["state"] != "poweroff" or LAST.encode() not in log or ENDS not in at:
        raise GuestDied(f"{answer['state']}: {answer['detail']}\n{tail(log)}\n{system.registers_text()}")
    instructions = int(system.stats()["instructions"])
    (begin_s, begin_i), (end_s, end_i) = at[BEGINS], at[ENDS]
    return {"moscope_s": round(now, 6), "moscope_cpu_s": round(time.process_time() - cpu, 3),
            "compute_mips": (end_i - begin_i) / max(end_s - begin_s, 1e-9) / 1e6,
            "boot_s": round(begin_s, 3), "boot_instructions": begin_i, "instructions": instructions}
