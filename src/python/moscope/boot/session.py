# SPDX-License-Identifier: BSD-3-Clause
"""One run of a machine: steps the engine, moves bytes between its console and the host's, takes the checkpoint, and reports
how the run ended.

Without a terminal, input is typed one line at each prompt of the guest, also at that for the rest of a command. The engine stops
shortly after a marker has appeared, at a moment that depends only on the guest and does not affect it. Two runs therefore have the
same bytes at the same instruction, whether or not one of them takes a checkpoint there.
"""

import io
import re
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

from moscope.boot import console, plan
from moscope.boot.engine import System
from moscope.errors import GuestDied, MoscopeError, SimulatorBug, TimeEnded, UserError
from moscope.guest import initramfs
from moscope.schema.constants import FS_PER_S

STEP_MS = 200
INTERACTIVE_STEP_MS = 20
END_OF_INPUT = b"\x04"
CONTROL = re.compile(rb"\x1b\[[0-9;?]*[A-Za-z]")
CUT_CONTROL = re.compile(rb"\x1b(\[[0-9;?]*)?\Z")  # one whose rest the guest has yet to send
PANIC_REASON = re.compile(rb"(?<!end )Kernel panic - not syncing: ([^\r\n]+)")
# With `panic=SECONDS`, a kernel that has panicked resets the machine, without the line of plan.PANIC.
PANIC_LINE = re.compile(rb"^(?:\[[^\]\r\n]*\] *)*Kernel panic - not syncing: ", re.MULTILINE)
WANTED_RESET = re.compile(rb"reboot: Restarting system|sysrq: Resetting")
REST_OF_PANIC_FS = 20 * 10**12  # simulated time in which the kernel shows the rest of its last line
LONGEST_ECHO = 1 << 14  # bytes; a line of a terminal has at most 4095 characters, which a line editor may show twice
# Ends at which the guest is dead (exit code 4), with what a person calls them.
DEATHS = {"panic": "kernel panic", "triple_fault": "triple fault", "hang": "hang"}
# The guest was still running at the end of simulated time (exit code 4).
END_OF_TIME = "end_of_time"
# The guest used what the processor promises and the model lacks: a fault of the simulator (exit code 5).
LACKING = "unmodelled"
FATAL = (*DEATHS, END_OF_TIME, LACKING)
# Markers that a program in the guest sets with an m5op (src/board/board.cc).
SET_BY_PROGRAMS = ("checkpoint", "workbegin", "workend")
# Ends that the user brought about.
STOPPED = ("quit", "interrupted")


@dataclass
class Outcome:
    """How a run ended. `ended`: poweroff, reset, exit, one of FATAL, quit (by the escape) or interrupted."""

    ended: str = "interrupted"
    detail: str = ""
    status: int = 0
    instructions: int = 0  # since the machine's start, the run that a checkpoint was taken of included
    executed: int = 0  # in this run
    per_core: list[int] = field(default_factory=list)
    ticks: int = 0  # since the machine's start
    begun: int = 0  # the tick of the checkpoint from which this run continues
    unknown_msrs: dict[int, int] = field(default_factory=dict)  # registers that the model lacks: how often used
    pauses: int = 0  # PAUSE instructions: what spin loops did
    touched_bytes: int = 0  # guest memory that was ever written or read
    network: dict[str, Any] = field(default_factory=dict)  # what the card counted, and what load generators report
    host_s: float = 0.0
    script_status: int | None = None
    checkpoint_taken: bool = False
    registers: str = ""

    @property
    def mips(self) -> float:
        return self.executed / self.host_s / 1e6 if self.host_s > 0 else 0.0

    @property
    def done(self) -> str:
        """Summary of the run; if it began at a checkpoint, with the time since power-on."""
        simulated = f"{(self.ticks - self.begun) / 1e15:.3f} s simulated"
        age = f", {self.ticks / 1e15:.3f} s since power-on" if self.begun else ""
        return f"{self.executed:,} instructions, {self.mips:.1f} MIPS, {simulated}{age}"


class Pace:
    """Limits the simulated time of each step to the real time that has passed since the previous one, so that an idle guest's clock is
    never faster than the user's. The guest does not catch up after it was slower, or after this process was stopped (SIGSTOP)."""

    MOST_S = 1  # the limit of a step; steps and waits for keys take 20 ms

    def __init__(self) -> None:
        self._last = time.monotonic()

    def passed(self) -> int:
        """Real time since the last call, in ticks."""
        now = time.monotonic()
        before, self._last = self._last, now
        return int(min(now - before, self.MOST_S) * FS_PER_S)


class Session:
    """`log` receives every byte of the console; so does `show`, if the console is displayed."""

    def __init__(self, system: System, wanted: plan.Plan, log: BinaryIO, checkpoint: Path,
                 show: Callable[[bytes], None] | None, terminal: console.Terminal | None) -> None:
        self.system, self.plan, self.log, self.show, self.terminal = system, wanted, log, show, terminal
        self.checkpoint = checkpoint
        self.watch = console.Watch([*wanted.config["markers"], initramfs.SCRIPT_ENDED])
        self.keys = console.Keys()
        self.outcome = Outcome()
        self._panicked = False
        by_user = terminal and wanted.typed is None
        self._to_type = [] if by_user else [f"{line}\n".encode() for line in wanted.typed or []] + [END_OF_INPUT]
        self._typed = self._since = b""  # the last line, and what the console has shown since it was typed
        self._instructions_before = 0
        self._started = 0.0

    def run(self) -> Outcome:
        """Runs until the guest ends, the user ends it, or an interruption, which is recorded in the outcome."""
        before = self.system.stats()
        self._instructions_before, self.outcome.begun = int(before["instructions"]), int(before["ticks"])
        self._started = time.monotonic()
        self._begin_typing()
        try:
            if self.terminal:
                with self.terminal.raw():
                    self._loop(INTERACTIVE_STEP_MS)
            else:
                self._loop(STEP_MS)
        except KeyboardInterrupt:
            self.outcome.ended = "interrupted"
        except console.Gone:
            # A reader that closes a pipe has seen enough and ends the run; a terminal that hangs up interrupts it.
            self.outcome.ended = "interrupted" if self.terminal else "quit"
        self.show = None
        self._take_output()
        self.log.flush()
        self._count()
        if self.outcome.ended in FATAL:
            self.outcome.registers = self.system.registers_text()
        return self.outcome

    # --- steps ---

    def _loop(self, step_ms: int) -> None:
        """In a user's shell, a guest that has caught up with real time waits until more time has passed, or a key is pressed. A script
        does not wait."""
        caught_up, pace = False, Pace() if self.terminal and not self.plan.config["info"].get("script") else None
        while True:
            if self.terminal and not self._keyboard(self.terminal, step_ms / 1000 if caught_up else 0):
                self.outcome.ended = "quit"
                return
            answer = self.system.step_until(self._now() + pace.passed(), step_ms) if pace else self.system.step(step_ms)
            seen = self._take_output()
            state, detail = str(answer["state"]), str(answer.get("detail", ""))
            caught_up = state == "time"
            if caught_up:
                state = "running"
            if state == "marker" and detail in SET_BY_PROGRAMS and detail not in seen:
                seen.append(detail)
            for text in seen:
                self._marked(text)
            self._panicked |= state == "reset" and reset_by_panic(self._since)
            if self._panicked and state in ("running", "marker", "reset", "poweroff", "hang"):
                if state in ("running", "marker"):
                    self._end_line()
                state, detail = "panic", panic_reason(self._since)
            if state not in ("running", "marker"):
                self.outcome.ended, self.outcome.detail, self.outcome.status = state, detail, int(answer.get("status", 0))
                return

    def _now(self) -> int:
        return int(self.system.counts()["ticks"])

    def _end_line(self) -> None:
        """Lets the guest show the rest of a line, for a fixed simulated time."""
        end = self._now() + REST_OF_PANIC_FS
        while self.system.step_until(end, STEP_MS)["state"] in ("running", "marker"):
            pass
        self._take_output()

    def _take_output(self) -> list[str]:
        data = self.system.console_output()
        if not data:
            return []
        self.log.write(data)
        self._since = (self._since + data)[-LONGEST_ECHO:]
        if self.show:
            self.show(data)
        return self.watch.feed(data)

    def _marked(self, text: str) -> None:
        if text == plan.PANIC:
            self._panicked = True
        if text == self.plan.checkpoint_at and not self.outcome.checkpoint_taken:
            self.system.save(str(self.checkpoint))
            self.outcome.checkpoint_taken = True
            if self.terminal:
                self.terminal.remark("checkpoint taken")
        if self._to_type and (text == initramfs.PROMPT or (text == plan.CONTINUATION and self._command_goes_on())):
            self._type_next()

    def _type_next(self) -> None:
        """Types the next line. The end of the input is typed at each further prompt: one ends a shell that a line started, or a command
        that lacks its end."""
        self._typed = self._to_type[0]
        if len(self._to_type) > 1:
            self._to_type.pop(0)
        cut = CUT_CONTROL.search(self._since)
        self._since = cut[0] if cut else b""
        self.system.console_input(self._typed)

    def _command_goes_on(self) -> bool:
        """Whether the shell asks for the rest of a command: since the last line was typed, the console has shown its echo alone."""
        shown = CUT_CONTROL.sub(b"", CONTROL.sub(b"", self._since))
        return b"".join(shown.split()) == b"".join(self._typed.split()) + b">"

    def _begin_typing(self) -> None:
        if not self._to_type:
            return
        if not self.plan.prompts:
            # Such a guest does not show when it waits for input, so all lines go into its input buffer at once.
            self.system.console_input(b"".join(self._to_type))
            self._to_type = []
        elif self.plan.at_prompt:
            # The checkpoint was taken at the moment of the prompt; the run that took it typed at the same moment.
            self._type_next()
        elif self.plan.resume and self.plan.typed:
            # Nothing shows whether the guest waits at its prompt. An empty line at most makes it print another prompt.
            self.system.console_input(b"\n")

    def _keyboard(self, terminal: console.Terminal, patience: float) -> bool:
        """Passes typed input to the guest, and waits up to `patience` seconds for it. Returns False when the user ends the run."""
        guest, commands = self.keys.split(terminal.typed(patience))
        if guest:
            self.system.console_input(guest)
        for letter in commands:
            if letter == "q":
                return False
            if letter == "s":
                self._count()
                terminal.remark(self.outcome.done)
            else:
                terminal.remark(console.HELP)
        return True

    def _count(self) -> None:
        stats, o = self.system.stats(), self.outcome
        o.instructions, o.per_core, o.ticks = int(stats["instructions"]), list(stats["per_core"]), int(stats["ticks"])
        o.pauses, o.touched_bytes = int(stats["pauses"]), int(stats["touched_bytes"])
        o.unknown_msrs = dict(stats.get("unknown_msrs", {}))
        if "network" in stats:
            o.network = {"counts": dict(stats["network"]), "drivers": dict(stats["network_drivers"])}
        o.host_s = time.monotonic() - self._started
        o.executed = o.instructions - self._instructions_before


def fatal(ended: str, detail: str) -> tuple[type[MoscopeError], str]:
    """The class and the text of the error for an end in FATAL."""
    if ended == END_OF_TIME:
        return TimeEnded, detail
    how = DEATHS.get(ended, "the guest uses a feature that the model lacks")
    return SimulatorBug if ended == LACKING else GuestDied, f"{how}: {detail}" if detail else how


def script_status(log: bytes) -> int | None:
    """The exit status of the guest's script, from the output of the initial file system."""
    found = re.findall(re.escape(initramfs.SCRIPT_ENDED).encode() + rb"(\d+)\r?\n", log)
    return int(found[-1]) if found else None


def panic_reason(log: bytes) -> str:
    """Why Linux has given up, from its console."""
    found = PANIC_REASON.findall(log)
    return found[-1].decode(errors="replace").strip() if found else "the kernel panicked without a message"


def reset_by_panic(log: bytes) -> bool:
    """Whether Linux reset the machine because it had panicked, not because a program wanted it."""
    found = list(PANIC_LINE.finditer(log))
    return bool(found) and not WANTED_RESET.search(log, found[-1].end())


def tail(log: bytes, lines: int = 25) -> str:
    """The last lines of a console's output, without control sequences."""
    text = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", log.decode(errors="replace")).replace("\r", "")
    return "\n".join(text.splitlines()[-lines:])


def piped_lines(stdin: BinaryIO) -> list[str]:
    """All lines of an input that is not a terminal, to be typed. Line feeds and carriage returns end a line; other separators that Unicode
    knows are characters of it."""
    try:
        return [line.removesuffix("\n") for line in io.StringIO(stdin.read().decode(), newline=None)]
    except UnicodeDecodeError as error:
        raise UserError(f"standard input: is not text ({error.reason}): expected lines to type") from error
