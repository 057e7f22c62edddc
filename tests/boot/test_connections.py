# SPDX-License-Identifier: BSD-3-Clause
"""Connections between the guest's own TCP and the hosts': many over a bad link, and those that a checkpoint or detailed mode finds
in the middle of a transfer."""

import re
from pathlib import Path
from typing import Any

import pytest
from conftest import in_order
from table import GUEST
from test_detailed import BEGIN, at_marker, leave, measured, until

from moscope.boot import plan, result, run
from moscope.cli import Shared
from moscope.guest import kernel

BAD_LINK = ("nic.lost=10000", "nic.duplicated=10000", "nic.delayed=10000")  # one frame in a hundred each
# Each of four processes sends random bytes to the echo service, and compares what comes back. They are in the middle at the marker.
ECHOING = f"""
dmesg -n 1
for i in 1 2 3 4; do dd if=/dev/urandom of=/tmp/sent$i bs=1000 count=2000 2>/dev/null; done
for i in 1 2 3 4; do (nc 10.1.1.$i 7 < /tmp/sent$i > /tmp/back$i; cmp /tmp/sent$i /tmp/back$i && echo "same $i") & done
sleep 0.0025 # 8 MB take 6.5 ms of the link in each direction
echo "{BEGIN}"
wait
echo "end"
"""


@pytest.mark.parametrize(("connections", "cores"), [(1000, 2), pytest.param(1_000_000, 1, marks=pytest.mark.long)])
def test_connections_over_a_bad_link_bring_all_bytes_and_leave_neither_sockets_nor_memory(
        connections: int, cores: int, distro: kernel.Kernel, programs: dict[str, Path], tmp_path: Path) -> None:
    script = tmp_path / "script.sh"
    script.write_text((GUEST / "connections.sh").read_text().replace("$1", str(connections)).replace("$2", "100").replace("$3", "3000"))
    options = plan.Options(script=script, net=True, cores=cores, memory_per_node="256MiB", programs={"server": programs["server"]})
    planned = plan.make(Shared(out=tmp_path / "out", json=True, sets=list(BAD_LINK)), options)
    outcome, document, log = run.run(planned)
    console = log.decode(errors="replace").replace("\r", "")
    assert result.exit_code(planned, outcome) == 0, console[-3000:]
    found = re.search(r"answers=(\d+) wrong=(\d+) refused=(\d+) reset=(\d+) stalled=(\d+)", console)
    assert found and int(found[1]) >= connections - 100 and not any(int(n) for n in found.groups()[1:]), console[-2000:]
    assert re.findall("^sockets (.*)$", console, re.MULTILINE) == ["inuse 0 orphan 0"] * 2
    before, after = (int(kb) for kb in re.findall(r"^memory (\d+)$", console, re.MULTILINE))
    assert before - after < 8192, (before, after)
    counts = document["network"]["counts"]
    faults = connections * 5 / 100  # of each kind; a connection is more than five frames each way
    assert min(counts["link_lost"], counts["link_duplicated"], counts["link_delayed"]) > faults


@pytest.mark.parametrize("cores", [2, pytest.param(48, marks=pytest.mark.long)])
def test_debians_netcat_gets_all_bytes_of_a_bulk_transfer(cores: int, distro: kernel.Kernel, tmp_path: Path) -> None:
    megabytes = 8
    script = tmp_path / "script.sh"
    script.write_text((GUEST / "bulk.sh").read_text().replace("$1", str(megabytes)))
    options = plan.Options(script=script, net=True, cores=cores, memory_per_node="256MiB", packages=("netcat-openbsd",))
    _, document, log = run.run(plan.make(Shared(out=tmp_path / "out", json=True), options))
    console = log.decode(errors="replace").replace("\r", "")
    assert not in_order(console, (f"same {megabytes}000000 bytes, from .*", "[0-9a-f]{32}  /tmp/back", "end")), console[-2000:]
    assert document["network"]["counts"]["in_bytes"] > megabytes * 1e6


def test_connections_resumed_from_a_checkpoint_go_on_identically_with_any_number_of_threads(distro: Any, tmp_path: Path) -> None:
    resumed = at_marker(tmp_path, ECHOING, BEGIN, cores=8, net=True)

    def went_on(system: Any) -> tuple[Any, ...]:
        before, (stats, per_core), after = system.stats()["network"], measured(system, 0.2), system.stats()["network"]
        assert after["in_packets"] > before["in_packets"] and after["out_packets"] > before["out_packets"]
        return stats, per_core, after

    # Where chips have event queues of their own, a transfer of the card begins up to an epoch later (docs/architecture.md).
    assert went_on(resumed()) == went_on(resumed())
    on_one = went_on(resumed(threads=1))
    system = resumed(threads=2)
    assert went_on(system) == on_one
    leave(system)
    until(lambda: system.step(200), "poweroff")
    console = system.console_output().decode()
    assert sorted(re.findall(r"same (\d)", console)) == ["1", "2", "3", "4"], console[-2000:]


def test_a_checkpoint_in_the_middle_of_connections_changes_nothing(distro: kernel.Kernel, tmp_path: Path) -> None:
    script = tmp_path / "script.sh"
    script.write_text(ECHOING)

    def booted(out: str, **options: Any) -> tuple[dict[str, Any], str]:
        _, document, log = run.run(plan.make(Shared(out=tmp_path / out, json=True, sets=list(options.pop("sets", []))),
                                             plan.Options(**options)))
        return document, log.decode(errors="replace")

    fresh: dict[str, Any] = {"script": script, "net": True, "cores": 2, "memory_per_node": "128MiB", "sets": BAD_LINK}
    whole, console = booted("whole", **fresh)
    first, same = booted("first", **fresh, checkpoint_at=BEGIN)
    rest, end = booted("rest", resume=Path(first["checkpoint"]))
    assert same == console and console.endswith(end) and end.count("same") == 4
    for document in (first, rest):
        assert document["instructions_per_core"] == whole["instructions_per_core"]
        assert document["network"] == whole["network"]
