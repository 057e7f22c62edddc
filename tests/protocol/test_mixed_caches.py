# SPDX-License-Identifier: BSD-3-Clause
"""A random test with tiny and with the machine's caches is reported as one."""

from moscope.protocol.check import together


def run(caches: str, unreached: list[str], violations: list[str]) -> dict[str, object]:
    return {"ok": not violations, "ops": 10, "seconds": 2.0, "checked_loads": 6, "loads_per_second": 3.0, "declared": 5,
            "reached": 5 - len(unreached), "unreached": unreached, "violations": violations, "caches": caches,
            "accesses": {"load": 6, "store": 4}}


def test_a_transition_is_reached_if_one_of_the_runs_reached_it() -> None:
    both = together([run("tiny", ["a", "b"], []), run("machine", ["b", "c"], [])])
    assert both["unreached"] == ["b"] and both["reached"] == 4 and both["ok"] and both["caches"] == "mixed"
    assert both["ops"] == 20 and both["accesses"] == {"load": 12, "store": 8} and both["loads_per_second"] == 3.0


def test_a_violation_of_one_of_the_runs_is_one_of_the_test() -> None:
    both = together([run("tiny", [], []), run("machine", [], ["wrong"])])
    assert not both["ok"] and both["violations"] == ["wrong"]


def test_a_single_run_is_reported_as_it_is() -> None:
    assert together([run("tiny", ["a"], [])])["caches"] == "tiny"
