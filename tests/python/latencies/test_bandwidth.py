# SPDX-License-Identifier: BSD-3-Clause
"""Bandwidths that a link or a port limits are those of closed formulas, on slow machines too; what a window must last."""

from typing import Any

import pytest

from moscope.cli import Shared
from moscope.errors import UserError
from moscope.experiment import Subject, prepare
from moscope.latencies import steady
from moscope.latencies.bandwidth import Bandwidth, loads, measure
from moscope.latencies.steady import Counted
from moscope.schema.constants import FS_PER_S
from moscope.wording import decimals

PAIR = ("chips=2", "topology=0-1")  # two chips of two cores and one link
PER_LINE = 96  # bytes on the two directions of a link: data 68, request 8, completion 4, three messages of a clean victim 16
PORT_CYCLES = 5  # of the port of an L3 for a line


def measured(load: str, *sets: str) -> tuple[Subject, Bandwidth]:
    subject = prepare(Shared(machine="small", sets=[*PAIR, *sets], quiet=True))
    return subject, measure(subject, next(one for one in loads(subject) if one.name == load))


@pytest.mark.parametrize("option", ["links.width=x4", "links.clock=1MHz"])
def test_a_link_limits_xfire_to_what_its_bytes_allow(option: str) -> None:
    subject, found = measured("XFIRE", option)
    links = subject.machine.links
    per_direction = 1 / float(links.byte_time(links.width, links.clock)) * FS_PER_S / 1e9
    # Half of all lines cross the link, whose two directions carry the bytes of each.
    assert found.measured == pytest.approx(2 * 64 * 2 * per_direction / PER_LINE, rel=0.01)


@pytest.mark.parametrize("clock", [100, 10, 1])
def test_the_port_of_an_l3_limits_a_node_to_a_line_in_five_cycles(clock: int) -> None:
    _, found = measured("node", f"nb_clock={clock}MHz")
    assert found.measured == pytest.approx(64 * clock / 1e3 / PORT_CYCLES, rel=0.005)


@pytest.mark.parametrize("sets", [("links.latency=5us",), ("links.clock=1MHz",), ("nb_clock=1MHz",), ()])
def test_lines_in_flight_are_the_bandwidth_times_the_loaded_latency(sets: tuple[str, ...]) -> None:
    subject, found = measured("XFIRE", *sets)
    latency_s = found.latency * float(subject.period) / FS_PER_S
    in_flight = len(found.load.cores) * found.load.in_flight
    assert found.measured * 1e9 / 64 * latency_s == pytest.approx(in_flight, rel=0.01)
    assert "101 %" not in found.limit.why


def counted(done: int, latency: float, busy: int = 0) -> Counted:
    network: dict[str, Any] = {"links": [{"channels": {"request": {"busy_fs": busy}}}], "ports": []}
    return Counted(done, latency, 1000, {"network": network})


@pytest.mark.parametrize(("window", "steady_state"), [(counted(100, 80.0), True), (counted(100, 84.0), False), (counted(100, 76.0), False),
                                                      (counted(100, 80.0, busy=1000), True), (counted(100, 80.0, busy=1010), False)])
def test_a_window_shows_a_steady_state_if_its_counts_are_possible(window: Counted, steady_state: bool) -> None:
    assert steady.is_steady(window, in_flight=8) == steady_state


def test_streams_that_never_settle_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(steady, "is_steady", lambda *_: False)
    monkeypatch.setattr(steady, "MOST", 1)
    with pytest.raises(UserError, match="^bandwidth: XFIRE: its bandwidth still changes after .* ns: expected a machine that settles$"):
        measured("XFIRE")


@pytest.mark.parametrize(("value", "shown"), [(157.7, "158"), (51.24, "51.2"), (6.4, "6.40"), (0.01067, "0.0107"), (0.0, "0.00")])
def test_bandwidths_have_three_significant_digits(value: float, shown: str) -> None:
    assert f"{value:.{decimals(value)}f}" == shown
