# SPDX-License-Identifier: BSD-3-Clause
"""`moscope bench streams`: its document, and a read with one line in flight against the idle latency."""

import json
import subprocess
from collections.abc import Callable

import pytest

from moscope import jsonio
from moscope.bench import streams
from moscope.cli import Shared
from moscope.config import load_machine
from moscope.experiment import prepare

Moscope = Callable[..., subprocess.CompletedProcess[str]]


def test_a_read_with_one_line_in_flight_takes_the_idle_latency_for_each(moscope: Moscope) -> None:
    got = moscope("bench", "streams", "--machine", "small", "--in-flight", "1", "--json")
    assert got.returncode == 0, got.stderr
    document = json.loads(got.stdout)
    jsonio.validate(document)
    rows = {(row["loop"], row["cores"]): row for row in document["rows"]}
    assert {loop for loop, _ in rows} == {"read", "write", "copy", "triad"}
    latencies = json.loads(moscope("latency", "--machine", "small", "--json").stdout)["rows"]
    local = next(row["measured"] for row in latencies if "DRAM" in row["name"])
    clock = float(load_machine("small").core_clock.period) / 1e6  # ns
    assert rows["read", 1]["ns_per_line"] == pytest.approx(local * clock, rel=0.05)
    for (_, cores), row in rows.items():
        assert row["gb_per_s"] * row["ns_per_line"] == pytest.approx(64 * cores, rel=0.01)


def test_each_line_that_one_core_writes_is_written_to_dram_too() -> None:
    subject = prepare(Shared(machine="small", quiet=True))
    read, write = (streams.measure(subject, loop, 1, 8)["gb_per_s"] for loop in ("read", "write"))
    assert write < 0.6 * read
