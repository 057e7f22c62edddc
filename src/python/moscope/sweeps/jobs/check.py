# SPDX-License-Identifier: BSD-3-Clause
"""Points that are runs of `moscope protocol check`."""

from pathlib import Path
from typing import Any

from moscope.errors import UserError
from moscope.protocol import check
from moscope.sweeps.jobs.base import Job, Planned, Report, Say, engine_digest, file_digest, machine_of, shared
from moscope.sweeps.spec import Params, Value, text
from moscope.wording import number


class Check(Job):
    name = "protocol check"
    options = ("protocol", "cores", "ops", "caches", "in_flight", "homes", "without", "with")
    required = ("protocol",)
    light = False
    figures_first = ("reached", "loads_per_second")

    def plan(self, params: Params, say: Say) -> Planned:
        chosen = shared(self, params)
        subject = subject_of(self, params, say)
        ops = count(params, "ops", check.DEFAULT_OPS) or check.DEFAULT_OPS
        asked = {key: value for key, value in params.items() if key in self.options}
        identity = {"job": self.name, "engine": engine_digest(), "machine": subject.machine, "protocol":
                    file_digest(subject.protocol.checking()), "options": asked, "seed": chosen.seed}
        return Planned(identity, f"check {subject.protocol.name} with {subject.machine['cores']} cores",
                       [[e.a, e.b] for e in machine_of(chosen).edges()], work=ops, memory_mb=1000)

    def run(self, params: Params, folder: Path, report: Report) -> dict[str, Any]:
        subject, seed = subject_of(self, params, lambda _: None), shared(self, params).seed
        in_flight = count(params, "in_flight", None)
        request = {} if in_flight is None else {"in_flight": in_flight}
        answer = check.random_test(subject, count(params, "ops", check.DEFAULT_OPS) or check.DEFAULT_OPS, seed,
                                   progress=lambda _: report(""), **request)
        return check.document(subject, answer, seed)

    def figures(self, document: dict[str, Any]) -> dict[str, Value | None]:
        plain = ("ok", "ops", "seconds", "reached", "declared", "checked_loads", "loads_per_second")
        return {**{key: document[key] for key in plain if key != "seconds"}, "test_seconds": document["seconds"],
                "violations": len(document["violations"])}

    def finding(self, document: dict[str, Any]) -> str | None:
        count = len(document["violations"])
        return f"{number(count, 'violation')}: {document['violations'][0]}" if count else None

    def words_of(self, name: str, value: Value) -> list[str]:
        return [text(value)] if name == "protocol" else super().words_of(name, value)


def subject_of(job: Job, params: Params, say: Say) -> check.Subject:
    chosen = shared(job, params)
    subject = check.prepare(text(params["protocol"]), chosen.machine, chosen.sets, cores=count(params, "cores", None),
                            caches=text(params.get("caches", "tiny")), homes=count(params, "homes", None), report=say)
    wanted, left = (words(params, name) for name in ("with", "without"))
    return subject.leave_out([k for k in subject.default_left_out() if k not in wanted] + left)


def words(params: Params, name: str) -> list[str]:
    return [word.strip() for word in text(params.get(name, "")).split(",") if word.strip()]


def count(params: Params, name: str, default: int | None) -> int | None:
    value = params.get(name, default)
    if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < 1):
        raise UserError(f"{name}: {value}: expected a whole number from 1")
    return value


JOB = Check()
