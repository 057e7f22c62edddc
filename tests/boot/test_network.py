# SPDX-License-Identifier: BSD-3-Clause
"""The network card under Linux's own driver: ping, ethtool, iperf, TCP to a host and back, with a bad link too; the capture file."""

import re
import struct
from pathlib import Path
from typing import Any

import pytest
from conftest import in_order
from table import GUEST

from moscope.boot import plan, result, run
from moscope.cli import Shared
from moscope.guest import kernel

PCAP_HEADER = struct.pack("<IHHIIII", 0xA1B23C4D, 2, 4, 0, 0, 65535, 1)


def booted(out: Path, *sets: str, **options: Any) -> tuple[dict[str, Any], str]:
    planned = plan.make(Shared(out=out, json=True, sets=list(sets)), plan.Options(script=GUEST / "net.sh", net=True, **options))
    outcome, document, log = run.run(planned)
    assert result.exit_code(planned, outcome) == 0, log[-3000:].decode(errors="replace")
    return document, log.decode(errors="replace")


def frames(path: Path) -> list[bytes]:
    data = path.read_bytes()
    assert data.startswith(PCAP_HEADER)
    at, found = len(PCAP_HEADER), []
    while at < len(data):
        kept, length = struct.unpack_from("<II", data, at + 8)
        assert kept == length
        found.append(data[at + 16:at + 16 + length])
        at += 16 + length
    return found


def interrupts_by_queue(console: str, cores: int) -> dict[int, list[int]]:
    """By core, of each queue that sends: from /proc/interrupts."""
    rows = re.findall(rf"[0-9]+:((?: +[0-9]+){{{cores}}}) .*virtio1-output\.([0-9]+)", console)
    return {int(queue): [int(count) for count in counts.split()] for counts, queue in rows}


@pytest.mark.parametrize(("name", "cores"), [
    ("distro", 2), *[pytest.param(name, cores, marks=pytest.mark.long) for name in ("distro", "pk") for cores in (1, 4, 48)]])
def test_the_guests_tools_see_a_card_with_a_queue_per_core(name: str, cores: int, distro: kernel.Kernel, tmp_path: Path) -> None:
    document, console = booted(tmp_path / "out", cores=cores, kernel=name, memory_per_node="256MiB", pcap=tmp_path / "frames.pcap",
                               packages=("ethtool", "iperf"))
    assert not in_order(console, (
        f"queues (rx-[0-9]+ ){{{cores}}}(tx-[0-9]+ ){{{cores}}}", "2 packets transmitted, 2 packets received, 0% packet loss",
        "echoed 100000", *[".* 0.250 MBytes .* Mbits/sec"] * cores, ".*Speed: 10000Mb/s", f"Combined:\\s+{cores}",
        f"RX flow hash indirection table for eth0 with {cores} RX ring.*", ".*toeplitz: on", ".*rx_queue_0_packets: [1-9].*",
        f".*tx_queue_{cores - 1}_packets: [1-9].*", "Combined:\\s+1", "1 packets transmitted, 1 packets received.*", "end"))
    counts = document["network"]["counts"]
    captured = frames(tmp_path / "frames.pcap")
    assert len(captured) == counts["in_packets"] + counts["out_packets"]
    assert sum(f[12:14] == b"\x08\x00" and f[23] == 1 for f in captured) == 6  # echo requests and replies
    assert sum(counts[f"queue{n}_in_packets"] for n in range(cores)) == counts["in_packets"]
    by_queue = interrupts_by_queue(console, cores)
    assert sorted(by_queue) == list(range(cores))
    for queue, by_core in by_queue.items():  # Linux moves a vector to its core at its second interrupt
        assert sum(by_core) - by_core[queue] <= 1 < by_core[queue], (queue, by_core)


@pytest.mark.long
@pytest.mark.parametrize("cores", [1, 12, 48])
def test_tcp_survives_a_link_that_loses_repeats_and_delays(cores: int, distro: kernel.Kernel, tmp_path: Path) -> None:
    document, console = booted(tmp_path / "out", "nic.lost=20000", "nic.duplicated=20000", "nic.delayed=50000", cores=cores,
                               memory_per_node="256MiB")
    assert not in_order(console, (f"queues (rx-[0-9]+ ){{{cores}}}(tx-[0-9]+ ){{{cores}}}", "echoed 100000", "end"))
    counts = document["network"]["counts"]
    assert min(counts["link_lost"], counts["link_duplicated"], counts["link_delayed"]) > 0
