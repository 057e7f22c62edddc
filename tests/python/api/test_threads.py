# SPDX-License-Identifier: BSD-3-Clause
"""Calls from several threads of one process wait for each other; each has the result that it has alone."""

from concurrent.futures import ThreadPoolExecutor

import pytest

import moscope as package

SCRIPT = "c0 ld A@n7; c13 st A@n7 | c5 rmw A@n7; c20 ld A@n7"


def test_traces_of_several_threads_are_those_of_one() -> None:
    def issued(seed: int) -> list[int]:
        found: list[int] = package.trace(SCRIPT, seed=seed).accesses["done_fs"].to_pylist()
        return found

    alone = issued(1)
    with ThreadPoolExecutor(4) as threads:
        assert all(of_thread == alone for of_thread in threads.map(issued, [1] * 40))


def test_checks_and_traces_run_in_threads_beside_each_other() -> None:
    with ThreadPoolExecutor(2) as threads:
        found = [threads.submit(package.check, "MSI", "small", caches="tiny", ops=3000, seed=seed) for seed in (1, 1, 2)]
        traces = [threads.submit(package.trace, SCRIPT) for _ in range(10)]
        assert all(one.result().ok for one in found)
        assert found[0].result().document["reached"] == found[1].result().document["reached"]
        assert all(one.result().accesses.num_rows == 4 for one in traces)


def test_a_simulation_that_the_progress_of_another_starts_is_refused() -> None:
    def progress(_: package.Progress) -> None:
        package.trace(SCRIPT)

    with pytest.raises(package.UserError, match="a function that it calls starts another one: expected a start after its end"):
        package.check("MSI", "small", caches="tiny", ops=100_000, progress=progress)
