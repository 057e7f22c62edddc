# SPDX-License-Identifier: BSD-3-Clause
"""Measures points in parallel, each in its own process. The number of processors and the memory of the host limit their
number. Points with the most cores start first, since they take longest.

A point that fails does not stop the others. An interruption ends all processes; finished points stay complete.
"""

import contextlib
import json
import os
import queue
import resource
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from typing import IO, Any

from moscope import errors, paths
from moscope.errors import MoscopeError, SimulatorBug
from moscope.failures import killed
from moscope.runs.guest import Progress
from moscope.runs.job import Job
from moscope.schema.constants import FS_PER_MS

# Host memory that is reserved for a point: for the machine, for each core, and for each core's accesses in a millisecond of the
# windows, which are kept until their lines are named. Other points get the rest.
BASE_BYTES, CORE_BYTES, CORE_MS_BYTES = 1200 << 20, 24 << 20, 5 << 20
SPARE = 1.15  # allowance for points that keep more than earlier points of their kind
GRACE_S = 10.0

Start = Callable[[Job, IO[bytes]], "subprocess.Popen[bytes]"]


class Running:
    """The process of a point. Its messages are queued together with this object; None marks its end."""

    def __init__(self, job: Job, said: "queue.SimpleQueue[tuple[Running, dict[str, Any] | None]]", start: Start) -> None:
        self.job = job
        self.answer: dict[str, Any] | None = None
        self._stderr = tempfile.TemporaryFile()  # noqa: SIM115 (open as long as the process)
        self.process = start(job, self._stderr)
        threading.Thread(target=self._read, args=(said,), daemon=True).start()

    def _read(self, said: "queue.SimpleQueue[tuple[Running, dict[str, Any] | None]]") -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            try:
                said.put((self, json.loads(line)))
            except ValueError:
                continue  # an incomplete line of a process that was killed
        said.put((self, None))

    def error(self) -> MoscopeError:
        """Why the process ended without a result."""
        found = self._error()
        found.point = self.job.point.name
        return found

    def _error(self) -> MoscopeError:
        self._stderr.seek(0)
        words = self._stderr.read().decode(errors="replace").rstrip()
        if self.answer and "error" in self.answer:
            return errors.KINDS.get(str(self.answer["error"]), SimulatorBug)(f"{self.job.called}: {self.answer['text']}")
        if error := killed(f"{self.job.called}: its process", self.process.returncode):
            return error
        return SimulatorBug(f"{self.job.called}: its process ended with {self.process.returncode}\n{words[-4000:]}")

    def end(self) -> None:
        self.process.terminate()
        try:
            self.process.wait(GRACE_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def start_process(job: Job, stderr: IO[bytes]) -> "subprocess.Popen[bytes]":
    process = subprocess.Popen([sys.executable, "-P", "-m", "moscope.runs.worker"], stdin=subprocess.PIPE,
                               stdout=subprocess.PIPE, stderr=stderr, env=_environment())
    assert process.stdin is not None
    with contextlib.suppress(BrokenPipeError), process.stdin as to:  # a process that ends without reading has its own error
        to.write(job.text().encode())
    return process


def _environment() -> dict[str, str]:
    """The environment for processes: they import this package, whatever other packages the caller imports from."""
    others = os.environ.get("PYTHONPATH")
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, [str(paths.import_dir()), others]))}


def available_bytes() -> int:
    """Host memory available without swapping; unlimited if the system does not report it."""
    try:
        with open("/proc/meminfo", encoding="ascii") as lines:
            for line in lines:
                if line.startswith("MemAvailable:"):
                    return int(line.split()[1]) << 10
    except OSError:
        pass
    return 1 << 60


def machine_bytes(cores: int) -> int:
    return BASE_BYTES + CORE_BYTES * cores


def wanted_bytes(job: Job, kept_bytes_per_ms: float | None = None) -> int:
    """The host memory to reserve for a job. `kept_bytes_per_ms`: for all cores, if it is known from earlier points."""
    point = job.point
    kept_ms = point.windows * point.window / FS_PER_MS if job.attribution else 0.0
    rate = CORE_MS_BYTES * point.cores if kept_bytes_per_ms is None else SPARE * kept_bytes_per_ms
    return machine_bytes(point.cores) + int(rate * kept_ms)


def used_bytes(process: int) -> int:
    """Host memory in use by a process; 0 if it does not exist."""
    try:
        with open(f"/proc/{process}/statm", encoding="ascii") as file:
            return int(file.read().split()[1]) * resource.getpagesize()
    except (OSError, IndexError):
        return 0


def still_wanted(one: Running) -> int:
    """The part of a process's reserved memory that it has not used yet."""
    return max(0, wanted_bytes(one.job) - used_bytes(one.process.pid))


def run(jobs: list[Job], progress: Callable[[Job, Progress | None], None], finished: Callable[[Job, dict[str, Any]], None],
        start: Start = start_process, processors: int | None = None,
        available: Callable[[], int] = available_bytes) -> list[MoscopeError]:
    """Measures all points; returns the errors of those that failed. `progress` is called with None when a point starts or ends."""
    waiting = sorted(jobs, key=lambda j: -j.point.cores)
    most = processors or len(os.sched_getaffinity(0))
    said: queue.SimpleQueue[tuple[Running, dict[str, Any] | None]] = queue.SimpleQueue()
    running: list[Running] = []
    failed: list[MoscopeError] = []
    try:
        while waiting or running:
            while waiting and len(running) < most and (
                    not running or available() - sum(map(still_wanted, running)) >= wanted_bytes(waiting[0])):
                job = waiting.pop(0)
                running.append(Running(job, said, start))
                progress(job, None)
            who, message = said.get()
            if message is None:
                who.process.wait()
                running.remove(who)
                if who.answer and "done" in who.answer:
                    finished(who.job, who.answer["done"])
                elif who.process.returncode == errors.INTERRUPTED:
                    raise KeyboardInterrupt
                else:
                    failed.append(who.error())
                progress(who.job, None)
            elif "progress" in message:
                progress(who.job, Progress(**message["progress"]))
            else:
                who.answer = message
    finally:
        for r in running:
            r.process.terminate()
        for r in running:
            r.end()
    return failed
