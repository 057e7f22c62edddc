# SPDX-License-Identifier: BSD-3-Clause
"""`moscope bench threads`: the models place recorded work on processors as the scheduler does."""

from typing import Any

import numpy as np
import pytest

from moscope import jsonio
from moscope.bench import threads
from moscope.errors import SimulatorBug

# Four chips in a row.
HOPS = [[abs(a - b) for b in range(4)] for a in range(4)]


def epochs(rows: list[list[int]]) -> threads.Epochs:
    """Of rows [chip 0, .., chip 3, serial, shared, longest part]."""
    table = np.array(rows, np.float64)
    return threads.Epochs(table[:, :4], table[:, 4], table[:, 5], table[:, 6])


@pytest.fixture
def no_barriers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads, "barrier_ns", lambda count: 0.0)


def test_a_record_of_another_number_of_chips_is_refused() -> None:
    with pytest.raises(SimulatorBug, match="expected a multiple of 7"):
        threads.Epochs.of(bytes(4 * 8), 4)


def test_the_time_of_the_record_itself_is_subtracted() -> None:
    rows = [[40, 90, 40, 140, 0, 0, 0], [40, 40, 40, 40, 75, 60, 50]]
    recorded = threads.Epochs.of(np.array(rows, np.uint32).tobytes(), 4)
    assert recorded.chips.tolist() == [[0, 50, 0, 100], [0, 0, 0, 0]]
    assert recorded.serial.tolist() == [0, 35] and recorded.shared.tolist() == [0, 20] and recorded.shared_part.tolist() == [0, 10]


def test_a_thread_runs_its_own_chips_first_and_then_takes_others_from_the_last_on() -> None:
    work = epochs([[100, 100, 100, 100, 0, 0, 0], [300, 10, 10, 10, 0, 0, 0], [10, 10, 300, 20, 0, 0, 0]]).chips
    # In the second row thread 1 runs chips 1, 3 and then 2; in the third, thread 0 runs chips 0 and 2.
    assert threads.longest(work, 2).tolist() == [200, 300, 310]
    assert threads.longest(work, 4).tolist() == [100, 300, 300]
    assert threads.longest(work, 1).tolist() == [400, 330, 340]


@pytest.mark.usefixtures("no_barriers")
def test_time_at_rest_is_the_serial_phase_and_the_shared_work_by_threads() -> None:
    built = threads.as_built(epochs([[100, 100, 100, 100, 50, 80, 60]]), 2)
    assert built["at_rest"] == 50 + 60 and built["whole"] == 200 + 110 and built["imbalance"] == 0


def test_each_epoch_has_one_barrier_and_a_serial_phase_with_shared_work_three_more() -> None:
    recorded = epochs([[1, 1, 1, 1, 0, 0, 0], [1, 1, 1, 1, 5, 4, 2]])
    assert threads.barriers(recorded, 2) == 5 * threads.barrier_ns(2) and threads.barriers(recorded, 1) == 0


@pytest.mark.usefixtures("no_barriers")
def test_distant_chips_that_are_slow_in_turns_do_not_wait_for_each_other_by_pairs() -> None:
    in_turns = epochs([[100, 0, 0, 0, 0, 0, 0], [0, 0, 0, 100, 0, 0, 0]] * 3)
    assert threads.as_built(in_turns, 4)["whole"] == 600
    # Chip 3 may be three epochs ahead of chip 0, and the other way round.
    assert threads.by_pairs(in_turns, HOPS, 4) < 600
    neighbours = epochs([[100, 0, 0, 0, 0, 0, 0], [0, 100, 0, 0, 0, 0, 0]] * 3)
    assert threads.by_pairs(neighbours, HOPS, 4) == 600


@pytest.mark.usefixtures("no_barriers")
def test_a_serial_phase_stops_all_chips_in_either_model() -> None:
    stopped = epochs([[100, 0, 0, 0, 7, 0, 0], [0, 0, 0, 100, 7, 0, 0]] * 3)
    assert threads.by_pairs(stopped, HOPS, 4) == threads.as_built(stopped, 4)["whole"] == 6 * 107


def test_more_processors_than_chips_change_nothing() -> None:
    rng = np.random.default_rng(1)
    recorded = epochs([[*rng.integers(1, 1000, 4).tolist(), 0, 0, 0] for _ in range(50)])
    rows = {row["processors"]: row for row in threads.model(recorded, HOPS)}
    assert rows[4]["threads"] == rows[16]["threads"] == 4 and rows[8] == {**rows[16], "processors": 8}
    assert rows[4]["as_built_s"] < rows[2]["as_built_s"]


def test_the_document_conforms_to_its_schema() -> None:
    point: dict[str, Any] = {"workload": "exim", "cores": 24, "window_ms": 1.0, "windows": [{"host_cpu_s": 2.0}]}
    recorded = epochs([[10, 20, 30, 40, 5, 4, 2]] * 9)
    document = threads.document("small", point, point, recorded, HOPS)
    jsonio.validate(document)
    assert document["epochs"] == 9 and document["recorded_s"] == pytest.approx(9 * 109e-9)
