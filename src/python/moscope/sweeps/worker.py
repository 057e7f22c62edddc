# SPDX-License-Identifier: BSD-3-Clause
"""`python -m moscope.sweeps.worker point|batch|boot NAME`: the process that Snakemake starts in the sweep's folder.

A point that any process has finished is not run again. A point that fails leaves `failed/DIGEST.json` with the error and the
command that repeats it. The process ends soon after the one that started it is gone.
"""

import json
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

from moscope import errors, jsonio
from moscope.errors import MoscopeError, UserError
from moscope.failures import as_error
from moscope.sweeps import jobs
from moscope.sweeps.jobs.base import Report, code_digest
from moscope.sweeps.points import command, with_version
from moscope.sweeps.store import DOCUMENT, RESULT, Store

REPORT_EVERY_S = 1.0


class Worker:
    def __init__(self, root: Path) -> None:
        self.store = Store(root)
        self.config = json.loads(self.store.config.read_text(encoding="utf-8"))
        self.job = jobs.find(self.config["job"])
        self.parent = os.getppid()
        self.reported = 0.0
        os.chdir(self.config["folder"])  # file names are relative to the folder where the sweep was started

    def still_wanted(self) -> None:
        if os.getppid() != self.parent:
            raise KeyboardInterrupt

    def reports(self, name: str, label: str) -> Report:
        """A function for jobs to call; it records the state of the point or boot `name` for the sweep."""
        def report(at: str) -> None:
            self.still_wanted()
            now = time.monotonic()
            if now - self.reported >= REPORT_EVERY_S:
                self.reported = now
                self.store.report_state(name, f"{label}: {at}" if at else label)

        return report

    def point(self, digest: str) -> int:
        """Runs a point, unless it is done or has failed in this start of the sweep; returns the exit code."""
        with self.store.locked(digest):
            try:
                if not self.store.done(digest):
                    if failure := self.store.failure(digest):
                        return int(failure["exit_code"])
                    self._make(digest)
                self.store.mark(digest)
                return errors.OK
            except Exception as error:  # noqa: BLE001  any failure of a point is recorded as its result
                return self._failed(digest, error)

    def _make(self, digest: str) -> None:
        params, started = self.config["points"][digest]["params"], time.monotonic()
        self._check_inputs(digest)
        if boot := self.config["points"][digest]["boot"]:
            self.job.take_boot(boot, self.store.root / "boots")
        with self.store.new_point(digest) as folder, self.store.reporting(digest):
            document = self.job.run(params, folder, self.reports(digest, self.job.label(params)))
            if self.job.light:
                (folder / DOCUMENT).write_text(jsonio.dumps(document) + "\n", encoding="utf-8")
            found = self.job.finding(document)
            result = {"schema": "moscope.sweep.point/1", "digest": digest, "job": self.job.name, "params": params,
                      "kind": self.config["points"][digest]["kind"], "code": code_digest(), "seconds": round(time.monotonic() - started, 4),
                      "figures": self.job.figures(document), **({"finding": found.text, "exit_code": found.exit_code} if found else {})}
            (folder / RESULT).write_text(jsonio.dumps(result) + "\n", encoding="utf-8")

    def _check_inputs(self, digest: str) -> None:
        """Raises UserError if the files from which the point would be made differ from those that its digest covers."""
        planned = with_version(self.job.plan(self.config["points"][digest]["params"], lambda _: None))
        if planned.digest != digest:
            raise UserError("its machine file, protocol, kernel, program or engine has changed since the sweep began: expected the same "
                            "command again, which then measures with the new one")

    def _failed(self, digest: str, error: Exception) -> int:
        params = self.config["points"][digest]["params"]
        reported = as_error(error, f"moscope sweep: {command(self.job, params)}")
        self.store.fail(digest, failure(digest, self.job.name, params, reported))
        print(reported.report(), file=sys.stderr)
        return reported.exit_code

    def batch(self, name: str) -> int:
        codes = []
        for digest in self.config["batches"][name]:
            self.still_wanted()
            codes.append(self.point(digest))
        if any(codes):
            return max(codes)
        Path(self.store.root, "batches", f"{name}.json").write_text(jsonio.dumps(self.config["batches"][name]) + "\n", encoding="utf-8")
        return errors.OK

    def boot(self, key: str) -> int:
        """Boots the guest from which points start. If the boot fails, these points have failed."""
        points = self.config["points"]
        with self.store.locked(key):
            try:
                first = self.config["boots"][key]["point"]
                if failure := self.store.failure(first):  # failed in this start already: a cluster retries jobs
                    return int(failure["exit_code"])
                params = points[first]["params"]
                self._check_inputs(first)
                with self.store.reporting(key):
                    self.job.make_boot(params, key, self.store.root / "boots", self.reports(key, self.job.label(params)))
                return errors.OK
            except Exception as error:  # noqa: BLE001  any failure of a boot is recorded for its points
                return max((self._failed(digest, error) for digest, point in points.items()
                            if point["boot"] == key and not self.store.done(digest)), default=errors.OK)


def failure(digest: str, job: str, params: dict[str, Any], error: MoscopeError) -> dict[str, Any]:
    return {"digest": digest, "params": params, "kind": errors.kind_of(error), "error": str(error), "exit_code": error.exit_code,
            "command": command(jobs.find(job), params)}


def main(arguments: list[str]) -> int:
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    what, name = arguments
    try:
        worker = Worker(Path.cwd())
        return int({"point": worker.point, "batch": worker.batch, "boot": worker.boot}[what](name))
    except KeyboardInterrupt:
        return errors.INTERRUPTED
    except MoscopeError as error:
        print(error.report(), file=sys.stderr)
        return error.exit_code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
