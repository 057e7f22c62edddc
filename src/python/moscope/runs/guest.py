# SPDX-License-Identifier: BSD-3-Clause
"""Runs a guest until a text appears on its console, until a marker of its workload, or until a simulated time. Any other
end is an error: the guest's death, or a workload that ends too early.
"""

import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from moscope.boot import plan
from moscope.boot.session import FATAL, fatal, panic_reason, reset_by_panic, tail
from moscope.errors import GuestDied, MoscopeError, WorkloadFailed
from moscope.guest import initramfs
from moscope.runs.engine import System
from moscope.schema.constants import FS_PER_MS, FS_PER_S

STEP_MS = 200
OBSERVED_EVERY_FS = 200 * 10**9  # 200 us of simulated time
# A core is busy if it executes more than 1/BUSY_PART of the instructions of the busiest core in each of BUSY_MS milliseconds.
BUSY_MS, BUSY_PART = 2, 4
# The guest's watchdog: the limit for any wait, in simulated time.
LONGEST_S = 120
WORK_ENDS = "workend"
MESSAGE = re.compile(r"(?!moscope:)[\w./-]+: \S.*")  # `moscope:` begins results


@dataclass(frozen=True)
class Progress:
    """The state of a point: `part` of its detailed time (0 to 1), and the recent speed in million instructions per host second."""

    phase: str
    simulated_s: float
    mips: float
    part: float


class Guest:
    """`log` receives every byte of the console. `report` is called with the progress a few times per second."""

    def __init__(self, system: System, report: Callable[[Progress], None], log: bytes = b"") -> None:
        self.system, self.report = system, report
        self.log = log
        self.observe: Callable[[], None] = lambda: None  # called between steps of detailed time
        self._phase, self._part = "", 0.0
        self._latest = 0  # simulated time; upon the start of detailed mode, the engine gives that of its last event, which is earlier
        self._seen: tuple[float, int] = (time.monotonic(), 0)
        self._rate = 0.0

    def phase(self, name: str, part: float = 0.0) -> None:
        self._phase, self._part = name, part
        if part in (0.0, 1.0):  # within detailed time, the count of instructions continues
            self._seen = (time.monotonic(), done(self.system.counts()))
            self._rate = 0.0
        self._tell()

    def type_in(self, text: str) -> None:
        self.system.console_input(text.encode())

    def until_marker(self, wanted: str, what: str) -> None:
        """Runs until the console shows the text `wanted`, or until a program sets the marker of that name."""
        begun = int(self.system.counts()["ticks"])
        while True:
            seen = self._step(lambda: self.system.step(STEP_MS))
            if seen == wanted:
                return
            if seen == initramfs.PROMPT:
                raise WorkloadFailed(f"{what}: ended too early{self.reason()}\n{self.last_words()}")
            if int(self.system.counts()["ticks"]) - begun > LONGEST_S * FS_PER_S:
                raise GuestDied(f"{what}: not reached within {LONGEST_S} s of simulated time\n{self.last_words()}")

    def until_busy(self, what: str) -> None:
        """Runs until every core in use is busy for BUSY_MS consecutive milliseconds, so that none of them waits. The instruction
        counts of the cores are read every millisecond and include the kernel's instructions."""
        begun = int(self.system.counts()["ticks"])
        before, busy = self.system.stats()["per_core"], 0
        while busy < BUSY_MS:
            if not self.until_before_windows(FS_PER_MS):
                raise WorkloadFailed(f"{what}: ended too early{self.reason()}\n{self.last_words()}")
            now = self.system.stats()["per_core"]
            done = [b - a for a, b in zip(before, now, strict=True)]
            busy = busy + 1 if min(done) * BUSY_PART > max(done) else 0
            before = now
            if int(self.system.counts()["ticks"]) - begun > LONGEST_S * FS_PER_S:
                raise GuestDied(f"{what}: not reached within {LONGEST_S} s of simulated time\n{self.last_words()}")

    def until_time(self, tick: int, part: Callable[[int], float], observed: bool = True,
                   ends: tuple[str, ...] = (WORK_ENDS, initramfs.PROMPT)) -> bool:
        """Runs to the simulated time; returns False if the workload ends before it. Observations are made at fixed simulated
        times, so that names do not depend on the speed of the host."""
        due = (int(self.system.counts()["ticks"]) // OBSERVED_EVERY_FS + 1) * OBSERVED_EVERY_FS if observed else tick
        while True:
            until = min(tick, due)
            seen = self._step(partial(self.system.step_until, until, STEP_MS))
            if seen == "time" and until == tick:
                return True
            if seen in ends:
                return False
            if seen == "time":
                self.observe()
                due += OBSERVED_EVERY_FS
            self._part = part(int(self.system.counts()["ticks"]))

    def until_before_windows(self, ticks: int) -> bool:
        """Runs for some simulated time; returns False if the program has ended. The program's mark for the end of windows is
        ignored here, before the windows."""
        return self.until_time(int(self.system.counts()["ticks"]) + ticks, lambda tick: 0.0, observed=False, ends=(initramfs.PROMPT,))

    def leave_detailed(self) -> None:
        """Returns to functional mode, in steps, so that an interruption is handled between them."""
        while not self.system.leave_detailed(STEP_MS):
            self._tell()

    def reason(self) -> str:
        """The last message that a program has printed since the command was typed, as ` (NAME: TEXT)`; empty if there is none."""
        for line in reversed(tail(self.log).splitlines()):
            if line.startswith(initramfs.PROMPT) and line != initramfs.PROMPT:
                break
            if MESSAGE.fullmatch(line):
                return f" ({line})"
        return ""

    def last_words(self) -> str:
        return f"--- the console's last lines\n{tail(self.log)}"

    def take_output(self) -> None:
        self.log += self.system.console_output()

    def _step(self, step: Callable[[], dict[str, Any]]) -> str:
        """Runs one step; returns the event that ended it (empty: none)."""
        answer = step()
        self.take_output()
        state, detail = str(answer["state"]), str(answer.get("detail", ""))
        self._tell()
        if (detail == plan.PANIC or (state != "marker" and plan.PANIC.encode() in self.log)
                or (state == "reset" and reset_by_panic(self.log))):
            raise self._death(*fatal("panic", panic_reason(self.log)))
        if state == "running":
            return ""
        if state == "time":
            return state
        if state == "marker":
            return detail
        if state == "exit":  # a program that exits with gem5's instruction continues here; its exit status shows how it ended
            if answer["status"]:
                raise WorkloadFailed(f"the guest ended the run ({detail}) with status {answer['status']}\n{self.last_words()}")
            return WORK_ENDS
        if state in FATAL:
            raise self._death(*fatal(state, detail))
        raise self._death(GuestDied, f"the guest ended the run ({state})" + (f": {detail}" if detail else ""))

    def _death(self, kind: type[MoscopeError], how: str) -> MoscopeError:
        return kind(f"{how}\n{self.last_words()}\n--- registers\n{self.system.registers_text()}")

    def _tell(self) -> None:
        counts, now = self.system.counts(), time.monotonic()
        at, before = self._seen
        if now - at > 0.2:  # the rate over a shorter time is not meaningful
            self._rate = max((done(counts) - before) / (now - at) / 1e6, 0.0)
        if now - at > 2:
            self._seen = (now, done(counts))
        self._latest = max(self._latest, int(counts["ticks"]))
        self.report(Progress(self._phase, self._latest / FS_PER_S, self._rate, self._part))


def done(counts: Mapping[str, int]) -> int:
    """Executed instructions, without those of spin loops, which take almost no host time."""
    return counts["instructions"] - counts["spun"]
