# SPDX-License-Identifier: BSD-3-Clause
"""`python -m moscope.runs.worker`: a process that measures the point described on its standard input (runs/job.py).

It writes JSON lines to standard output: {"progress": ...} a few times per second and, at the end, {"done": POINT} or
{"error": KIND, "text": ...}, KIND of errors.KINDS. At that time the results are complete in the point's folder.
"""

import os
import signal
import sys
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from moscope import errors, jsonio
from moscope.cli import json_only_on_stdout
from moscope.failures import as_error
from moscope.runs import directory, job, point
from moscope.runs.guest import Progress

EVERY_S = 0.2


def main() -> int:
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with json_only_on_stdout(True) as out:
        send = sender(out)
        try:
            send(work(job.parse(sys.stdin.read()), progress_of(send)))
        except KeyboardInterrupt:
            return errors.INTERRUPTED
        except Exception as error:  # noqa: BLE001 (the front end reports every error)
            known = as_error(error, "moscope run: a point")
            send({"error": errors.kind_of(known), "text": str(known)})
            return known.exit_code
    return errors.OK


def sender(out: int) -> Callable[[dict[str, Any]], None]:
    def send(message: dict[str, Any]) -> None:
        data = jsonio.dumps(message).encode() + b"\n"
        while data:
            data = data[os.write(out, data):]

    return send


def progress_of(send: Callable[[dict[str, Any]], None]) -> Callable[[Progress], None]:
    """Reports progress periodically; ends this process if its parent is gone."""
    parent, last, phase = os.getppid(), 0.0, ""

    def report(progress: Progress) -> None:
        nonlocal last, phase
        if os.getppid() != parent:
            raise KeyboardInterrupt
        now = time.monotonic()
        if now - last >= EVERY_S or progress.phase != phase:
            last, phase = now, progress.phase
            send({"progress": asdict(progress)})

    return report


def work(wanted: job.Job, report: Callable[[Progress], None]) -> dict[str, Any]:
    """Measures the point and writes its folder; returns the last message."""
    with jsonio.atomic_dir(Path(wanted.folder)) as folder:
        result = point.measure(wanted, folder, report, lambda text: print(text, file=sys.stderr))
        result.point["engine"] = directory.engine_digest()
        directory.write_point(folder, result)
    return {"done": result.point}


if __name__ == "__main__":
    sys.exit(main())
