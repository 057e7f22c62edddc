# SPDX-License-Identifier: BSD-3-Clause
"""Calls from several threads of one process wait for each other; each has the result that it has alone."""

import json
import os
import signal
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from pathlib import Path

import pytest

import moscope as package
from moscope import _engine
from moscope.boot import plan
from moscope.config import load_machine

SCRIPT = "c0 ld A@n7; c13 st A@n7 | c5 rmw A@n7; c20 ld A@n7"
MOST_S = 60


@contextmanager
def check_under_way() -> Iterator[None]:
    """A random test in another thread, which is held up until the end of the context."""
    begun, go_on = threading.Event(), threading.Event()

    def progress(of: package.Progress) -> None:
        if of.share > 0:  # its simulation has begun
            begun.set()
            go_on.wait(MOST_S)

    with ThreadPoolExecutor(1) as thread:
        found = thread.submit(package.check, "MSI", "small", caches="tiny", ops=20_000, progress=progress)
        try:
            assert begun.wait(MOST_S)
            yield
        finally:
            go_on.set()
        assert found.result().ok


def test_traces_of_several_threads_are_those_of_one() -> None:
    def issued(seed: int) -> list[int]:
        found: list[int] = package.trace(SCRIPT, seed=seed).accesses["done_fs"].to_pylist()
        return found

    alone = issued(1)
    with ThreadPoolExecutor(4) as threads:
        assert all(of_thread == alone for of_thread in threads.map(issued, [1] * 8))


def test_a_trace_waits_for_the_check_of_another_thread() -> None:
    with ThreadPoolExecutor(1) as thread:
        with check_under_way():
            trace = thread.submit(package.trace, "c0 ld A@n0", "small")
            assert not wait([trace], 0.4).done
        assert trace.result().accesses.num_rows == 1


def test_a_system_is_built_and_steps_after_the_check_of_another_thread(tmp_path: Path) -> None:
    """Its first step reads the kernel, which does not exist here."""
    machine = load_machine("small", ["memory_per_node=64MiB"])
    config = {**plan.platform(machine), "cores": 1, "seed": 1, "kernel": str(tmp_path / "none"), "initrd": "",
              "append": "", "disk": "", "markers": [], "info": {}}
    system = _engine.System(json.dumps(config))
    for call in (lambda: _engine.System("{}"), lambda: system.step(1)):
        with ThreadPoolExecutor(1) as thread:
            with check_under_way():
                waiting = thread.submit(call)
                assert not wait([waiting], 0.4).done
            assert isinstance(waiting.exception(), package.UserError)


def test_a_process_that_was_forked_during_a_simulation_cannot_start_one() -> None:
    with check_under_way():
        child = os.fork()
        if child == 0:
            signal.alarm(MOST_S)  # ends a wait for the parent's simulation
            try:
                package.trace("c0 ld A@n0", "small")
            except package.UserError as error:
                os._exit(0 if "forked from one that was simulating: expected " in str(error) else 1)
            finally:
                os._exit(2)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_checks_of_two_threads_reach_what_one_reaches() -> None:
    with ThreadPoolExecutor(2) as threads:
        found = [threads.submit(package.check, "MSI", "small", caches="tiny", ops=1000, seed=seed) for seed in (1, 1, 2)]
        assert all(one.result().ok for one in found)
        assert found[0].result().document["reached"] == found[1].result().document["reached"]


def test_a_simulation_that_the_progress_of_another_starts_is_refused() -> None:
    def progress(_: package.Progress) -> None:
        package.trace(SCRIPT)

    with pytest.raises(package.UserError, match="one of its callbacks starts another one: expected the second one to start after"):
        package.check("MSI", "small", caches="tiny", ops=100_000, progress=progress)
