# SPDX-License-Identifier: BSD-3-Clause
"""Points that are runs of `moscope protocol check`."""

from pathlib import Path
from typing import Any

from moscope.errors import ProtocolError, UserError
from moscope.protocol import check
from moscope.sweeps.jobs.base import (
    Finding,
    Job,
    Planned,
    Report,
    Say,
    anywhere,
    engine_digest,
    file_digest,
    machine_of,
    shared,
)
from moscope.sweeps.spec import Params, Value, quoted, text
from moscope.wording import number

START_OPS = 10_000  # the start of a test takes as long as so many operations: 0.03 to 0.2 s, at about 10 us per operation


class Check(Job):
    name = "protocol check"
    options = ("protocol", "cores", "ops", "caches", "in_flight", "homes", "without", "with")
    required = ("protocol",)
    elsewhere = ("strict", "counterexample", "shrink")
    light = False
    figures_first = ("reached",)
    figures_beside = ("declared", "violations", "loads_per_second")

    def plan(self, params: Params, say: Say) -> Planned:
        chosen = shared(self, params)
        subjects, ops = subjects_of(self, params, say), ops_of(params)
        in_flight_of(params)
        subject = subjects[0]
        asked = {key: value for key, value in params.items() if key in self.options}
        identity = {"job": self.name, "engine": engine_digest(), "protocol": file_digest(subject.protocol.checking()),
                    "machine": subject.machine if len(subjects) == 1 else [s.machine for s in subjects], "options": asked,
                    "seed": chosen.seed}
        return Planned(identity, f"protocol check {subject.protocol.name} with {subject.machine['cores']} cores",
                       [[e.a, e.b] for e in machine_of(chosen).edges()], work=START_OPS + ops, memory_mb=1000)

    def run(self, params: Params, folder: Path, report: Report) -> dict[str, Any]:
        subjects, seed = subjects_of(self, params, lambda _: None), shared(self, params).seed
        request = {} if (in_flight := in_flight_of(params)) is None else {"in_flight": in_flight}
        documents: list[dict[str, Any]] = []
        for subject, ops in zip(subjects, check.shares(subjects, ops_of(params)), strict=True):
            try:
                answer = check.random_test(subject, ops, seed, progress=lambda _: report(""), **request)
            except check.Broken as error:
                return check.failed_document(subject, error, seed)  # of this part alone, as the command reports it
            documents.append(check.document(subject, answer, seed))
            if not documents[-1]["ok"]:
                break
        return check.together(documents)

    def figures(self, document: dict[str, Any]) -> dict[str, Value | None]:
        plain = ("ok", "ops", "seconds", "reached", "declared", "checked_loads", "loads_per_second")
        return {**{key: document[key] for key in plain if key != "seconds"}, "test_seconds": document["seconds"],
                "violations": len(document["violations"])}

    def finding(self, document: dict[str, Any]) -> Finding | None:
        if error := document.get("protocol_error"):
            return Finding(f"{ProtocolError.kind}: {error}", ProtocolError.exit_code)
        count = len(document["violations"])
        return Finding(f"{number(count, 'violation')}: {document['violations'][0]}") if count else None

    def words_of(self, name: str, value: Value) -> list[str]:
        return [anywhere(text(value))] if name == "protocol" else super().words_of(name, value)


def subjects_of(job: Job, params: Params, say: Say) -> list[check.Subject]:
    chosen = shared(job, params)
    return check.subjects(text(params["protocol"]), chosen.machine, chosen.sets, ops_of(params), cores=count(params, "cores", None),
                          caches=text(params["caches"]) if "caches" in params else None, homes=count(params, "homes", None),
                          include=words(params, "with"), without=words(params, "without"), report=say)


def ops_of(params: Params) -> int:
    found = count(params, "ops", check.DEFAULT_OPS) or check.DEFAULT_OPS
    check.check_ops("ops", found)
    return found


def in_flight_of(params: Params) -> int | None:
    found = count(params, "in_flight", None)
    if found is not None:
        check.check_in_flight("in_flight", found)
    return found


def words(params: Params, name: str) -> list[str]:
    return [word.strip() for word in text(params.get(name, "")).split(",") if word.strip()]


def count(params: Params, name: str, default: int | None) -> int | None:
    value = params.get(name, default)
    if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < 1):
        raise UserError(f"{name}: {quoted(value)}: expected a whole number from 1")
    return value


JOB = Check()
