# SPDX-License-Identifier: BSD-3-Clause
"""A guest that runs a workload, in the place of the engine's machine."""

import json
from typing import Any

import numpy as np

from moscope.guest import initramfs
from moscope.naming import rows
from moscope.naming.namer import Named

MS = 10**12


class FakeSystem:
    """At its prompt; a typed line starts a workload that counts one operation every 100 us of simulated time. `ends_at`:
    simulated ms of detailed time after which it is over; `script`: answers of functional steps in place of its own."""

    def __init__(self, cores: int = 2, ends_at: float | None = None, script: list[dict[str, Any]] | None = None,
                 verify: str = "ok", steps_to_leave: int = 3) -> None:
        self.cores, self.ends_at, self.script, self.verify = cores, ends_at, script, verify
        self.tick, self.since, self.begun = 10 * MS, 0, 0
        self.detailed, self.running = False, False
        self.steps_to_leave = steps_to_leave
        self.out = b""
        self.typed: list[str] = []

    def step(self, host_ms: int) -> dict[str, Any]:
        assert not self.detailed
        self.tick += MS
        self.running = bool(self.typed)
        if self.script:
            answer = {"state": "running", "detail": "", "status": 0, **self.script.pop(0)}
            self.out += str(answer.pop("shows", "")).encode()
            return answer
        if self.typed and self.typed[-1] == "\x03":
            self.out += f"^Cmoscope: fake operations=1 verify={self.verify}\r\n{initramfs.PROMPT}".encode()
            return {"state": "marker", "detail": initramfs.PROMPT, "status": 0}
        assert self.typed, "nothing was typed"
        self.running = True
        return {"state": "marker", "detail": "workbegin", "status": 0}

    def step_until(self, until: int, host_ms: int) -> dict[str, Any]:
        if not self.detailed:
            return self._step_functional_until(until)
        assert self.running
        over = None if self.ends_at is None else self.begun + int(self.ends_at * MS)
        if over is not None and over < until:
            self.tick = over
            return {"state": "marker", "detail": "workend", "status": 0}
        self.tick = min(until, self.tick + MS)  # a step may end before the time has come
        return {"state": "time" if self.tick == until else "running", "detail": "", "status": 0}

    def _step_functional_until(self, until: int) -> dict[str, Any]:
        assert self.typed and until >= self.tick
        self.running = True
        if self.script:
            return self.step(0)
        self.tick = until + 7  # functional mode stops a little beyond
        return {"state": "time", "detail": "", "status": 0}

    def counts(self) -> dict[str, int]:
        gone = self.tick - self.begun if self.detailed else 0
        return {"instructions": gone // 1000, "spun": gone // 4000, "ticks": self.tick, "operations": gone // (MS // 10),
                "pauses": 0}

    def stats(self) -> dict[str, Any]:
        return {**self.counts(), "per_core": [], "touched_bytes": 4096}

    def stats_json(self) -> str:
        window = self.tick - self.since
        half, quarter = window // 2, window // 4
        # Of the kernel's quarter, a half is turns of a spin loop that looks at the line.
        spin = {"busy": {"kernel": quarter // 2, "user": 0}, "core": {"kernel": 0, "user": 0}}
        core = {"window": window, "spin": spin, "busy": {"kernel": quarter, "user": 0}, "idle": {"kernel": quarter, "user": 0},
                "core": {"kernel": 0, "user": 0}, "memory": {"kernel": 0, "user": half}}
        spun = self.cores * (quarter // 2)
        return json.dumps({"cores": [core] * self.cores, "machine": {}, "attribution": {"exposed": self.cores * half, "spin": spun}})

    def attribution_rows(self) -> rows.PackedRows:
        window = self.tick - self.since
        stall, spun = self.cores * (window // 2), self.cores * (window // 4 // 2)
        line, pair = np.zeros(1, rows.LINES), np.zeros(1, rows.PAIRS)
        for name, value in {"line": 64, "va": 64, "stall": stall, "spin": spun, "spin_iterations": 3, "transfers": 5, "use": 1,
                            "waiters": (1 << self.cores) - 1}.items():
            line[name] = value
        for name, waited, count in (("cold", 1, 1), ("true_sharing", stall - 1, 4)):
            of_class = rows.CLASSES.index(name)
            line["class_stall"][:, of_class], line["class_count"][:, of_class] = waited, count
        for name, value in {"writer": 0x401000, "waiter": 0x402000, "stall": stall, "spin": spun, "count": 5}.items():
            pair[name] = value
        return line.tobytes(), pair.tobytes(), np.zeros(0, rows.TRANSFERS).tobytes()

    def keep_attribution(self) -> None:
        self.kept = self.attribution_rows()

    def kept_attribution_rows(self) -> rows.PackedRows:
        return self.kept

    def episodes(self) -> bytes:
        return b"until %d" % self.tick

    loads = stacks = episodes

    def record_epochs(self) -> None:
        pass

    stop_stacks = record_epochs

    def epoch_record(self) -> bytes:
        return b""

    def enter_detailed(self) -> None:
        self.detailed, self.begun = True, self.tick

    def leave_detailed(self, host_ms: int) -> bool:
        self.steps_to_leave -= 1
        self.detailed = self.steps_to_leave > 0
        return not self.detailed

    def reset_stats(self) -> None:
        self.since = self.tick

    def physical_of(self, dram: int) -> int:
        return dram + 0x1000

    def console_output(self) -> bytes:
        data, self.out = self.out, b""
        return data

    def console_input(self, data: bytes) -> None:
        self.typed.append(data.decode())

    def registers_text(self) -> str:
        return "rip ffffffff81000000"


class FakeNames:
    """Lines and code are called by their addresses."""

    def line(self, line: int, va: int, offset: int, cr3: int, walk: bool, page: dict[str, int] | None = None, free: bool = False) -> Named:
        return Named(f"physical {line + 0x1000:#x}", "unknown")

    def whole_page(self, va: int, cr3: int) -> bool:
        return False

    def allocates(self, pc: int) -> bool:
        return False

    def code(self, pc: int, cr3: int = 0) -> str:
        return f"{pc:#x}"

    def notes(self) -> list[str]:
        return []

    def source(self, pc: int, cr3: int = 0) -> None:
        return None

    def process(self, cr3: int) -> str:
        return ""
