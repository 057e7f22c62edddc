# SPDX-License-Identifier: BSD-3-Clause
"""Cores that overlap their misses: closed forms of pointer chases side by side, against the model that does not."""

import re
from collections.abc import Callable
from typing import Any

import pytest

from moscope import workloads
from moscope.config import Machine, load_machine

MISS_BUFFERS = 8
# Size, node and rounds before the measurement, by where the loads are served. Random rows of a node's two ganged channels are
# slower than eight misses; those of eight channels are not.
PLACES = {"L2": ("384KiB", 0, 4), "L3": ("4MiB", 0, 2), "DRAM": ("32MiB", 0, 0), "1 hop": ("32MiB", 1, 0),
          "2 hops": ("32MiB", 3, 0), "3 hops": ("32MiB", 7, 0)}
CHANNELS = ("dram.settings.ganged=false", "dram.channels=8")
CHAINS = range(1, 13)


class Chases:
    """A guest of one core at its prompt, in detailed mode while a chase runs."""

    def __init__(self, guest: Any) -> None:
        self.guest = guest

    def cycles_per_load(self, place: str, chains: int) -> float:
        size, node, warm = PLACES[place]
        guest, system = self.guest, self.guest.system
        chase = workloads.find("chase").program
        guest.type(f"{chase} --simulated --size {size} --node {node} --warm {warm} --chains {chains} --operations 30")
        guest.wait_for("workbegin")
        system.enter_detailed()
        guest.wait_for("workend")
        while not system.leave_detailed(200):
            pass
        guest.wait_for("moscope# ")
        said = re.search(r"cycles_per_load=([0-9.]+) median=([0-9.]+) verify=(\w+)", guest.console)
        assert said and said[3] == "ok", guest.console[-500:]
        return float(said[2])


@pytest.fixture(scope="module")
def chases(booted: Callable[..., Any]) -> Callable[[str], Chases]:
    return lambda model: Chases(booted(detailed=True, cores=1, timing=(f"core.model={model}", *CHANNELS)))


def port_cycles(machine: Machine, bytes_: int) -> float:
    """How long a packet takes a port of the crossbar, in cycles of the core."""
    return float(-(-bytes_ // machine.crossbar.port.bytes) * machine.core_clock.amount / machine.nb_clock.amount)


def cycles_per_line(place: str) -> float:
    """Of the path to the core, if that is what bounds it."""
    machine = load_machine("opteron48")
    line, packets = machine.line.bytes, machine.links.packets
    if place == "L3":  # the L3's port takes the request for each line and the victim that makes room for it
        return port_cycles(machine, packets.request.bytes) + port_cycles(machine, packets.request.bytes + line)
    if "hop" in place:  # two bytes on each edge of the link's clock
        return float((line + packets.response.bytes) / (2 * 2 * machine.links.clock.amount) * machine.core_clock.amount)
    return 0


def expected(place: str, latency: float, chains: int) -> float:
    """Cycles per load: the closed form of as many independent loads as there are miss buffers."""
    served, per_line = min(chains, MISS_BUFFERS), cycles_per_line(place)
    if place == "L3" and per_line > 0.75 * latency / served:  # then a request finds the victim of the line before at the port
        machine = load_machine("opteron48")
        latency += port_cycles(machine, machine.links.packets.request.bytes + machine.line.bytes)
    return max(latency / served, per_line)


@pytest.mark.long
@pytest.mark.parametrize("place", PLACES)
def test_independent_chases_overlap_up_to_the_miss_buffers(chases: Callable[[str], Chases], place: str) -> None:
    latency = chases("blocking").cycles_per_load(place, 1)
    overlapping = chases("out_of_order")
    measured = {k: overlapping.cycles_per_load(place, k) for k in CHAINS}
    print(place, latency, measured)
    assert measured[1] == pytest.approx(latency, rel=0.01)
    for k, cycles in measured.items():
        assert cycles == pytest.approx(expected(place, latency, k), rel=0.1), (k, measured)
