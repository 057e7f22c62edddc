# SPDX-License-Identifier: BSD-3-Clause
"""The network card under Linux's own driver: ping, TCP to a host and back, with a bad link too; the capture file."""

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


def test_the_guest_pings_a_host_and_gets_its_bytes_back(distro: kernel.Kernel, tmp_path: Path) -> None:
    document, console = booted(tmp_path / "out", cores=2, memory_per_node="256MiB", pcap=tmp_path / "frames.pcap")
    assert not in_order(console, ("queues rx-0 rx-1 tx-0 tx-1 ", "2 packets transmitted, 2 packets received, 0% packet loss",
                                  "echoed 100000", "end"))
    counts = document["network"]["counts"]
    captured = frames(tmp_path / "frames.pcap")
    assert len(captured) == counts["in_packets"] + counts["out_packets"]
    assert sum(f[12:14] == b"\x08\x00" and f[23] == 1 for f in captured) == 4  # echo requests and replies
    assert sum(counts[f"queue{n}_in_packets"] for n in range(2)) == counts["in_packets"]


@pytest.mark.long
@pytest.mark.parametrize("cores", [1, 12, 48])
def test_tcp_survives_a_link_that_loses_repeats_and_delays(cores: int, distro: kernel.Kernel, tmp_path: Path) -> None:
    document, console = booted(tmp_path / "out", "nic.lost=20000", "nic.duplicated=20000", "nic.delayed=50000", cores=cores,
                               memory_per_node="256MiB")
    assert not in_order(console, (f"queues (rx-[0-9]+ ){{{cores}}}(tx-[0-9]+ ){{{cores}}}", "echoed 100000", "end"))
    counts = document["network"]["counts"]
    assert min(counts["link_lost"], counts["link_duplicated"], counts["link_delayed"]) > 0
