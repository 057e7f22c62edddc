# SPDX-License-Identifier: BSD-3-Clause
"""48 cores that all write to one line: each makes progress, however far from the line's home it is. A request that never finishes is
found, whichever core of a controller made it."""

import json
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

from moscope import buildproto, config
from moscope.errors import ProtocolError
from moscope.experiment import Subject
from moscope.protocol.check import WATCHDOG_FS, prepare, random_test
from moscope.protocol.counterexample.replay import Candidate, Played, Player
from moscope.traces.document import run_script
from moscope.traces.script import parse

HANDOVER = Path(__file__).parent / "protocols" / "Handover.slicc"
PROTOCOLS = sorted(buildproto.known_protocols())
SHORT_FS, LONG_FS = 400_000_000_000, 20_000_000_000_000  # 0.4 ms, 20 ms


def hops(machine: dict[str, Any], start: int, home: int) -> int:
    """Links between two chips, by the machine's own routes."""
    routes, at, n = machine["network"]["routes"], start, 0
    while at != home:
        at, n = routes[at][home], n + 1
    return n


def contention(engine: Any, subject: Any, kind: str, node: int, until_fs: int) -> dict[str, Any]:
    request = {"kind": kind, "node": node, "until_fs": until_fs}
    answer = json.loads(engine.run_contention(subject.text, str(subject.protocol.checking()), json.dumps(request),
                                              watchdog=WATCHDOG_FS))
    by_distance: dict[int, list[int]] = defaultdict(list)
    for chip, writes in zip(answer["chips"], answer["writes"], strict=True):
        by_distance[hops(subject.machine, chip, node)].append(writes)
    answer["by_distance"] = {d: {"cores": len(w), "least": min(w), "mean": sum(w) / len(w), "most": max(w)}
                             for d, w in sorted(by_distance.items())}
    answer["ratio"] = max(answer["writes"]) / max(min(answer["writes"]), 1)
    return answer


def check(answer: dict[str, Any], kind: str) -> None:
    print(json.dumps({"ratio": answer["ratio"], "by_distance": answer["by_distance"],
                      "longest_us": max(answer["longest_fs"]) / 1e9}))
    assert min(answer["writes"]) > 0
    assert sum(d["cores"] for d in answer["by_distance"].values()) == len(answer["writes"])
    if kind == "rmw":
        assert answer["final"] == sum(answer["writes"])  # none was lost


@pytest.mark.parametrize("kind", ["store", "rmw"])
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_every_core_gets_the_line_again_and_again(engine: Any, subject: Any, protocol: str, kind: str) -> None:
    answer = contention(engine, subject(protocol, 48, caches="machine", jitter=None), kind, 0, SHORT_FS)
    check(answer, kind)
    assert min(answer["writes"]) >= 5


@pytest.mark.long
@pytest.mark.parametrize("sets", [(), ("probe_filter.enabled=false",)], ids=["filter-on", "filter-off"])
@pytest.mark.parametrize("node", [0, 3])
def test_no_core_starves_in_the_long_run(engine: Any, subject: Any, node: int, sets: tuple[str, ...]) -> None:
    subject48 = subject("MOESI_HTAssist", 48, caches="machine", jitter=None, sets=sets)
    answer = contention(engine, subject48, "rmw", node, LONG_FS)
    check(answer, "rmw")
    assert answer["ratio"] < 20


@pytest.mark.long
def test_a_request_of_the_first_of_two_cores_of_a_controller_is_watched(tmp_path: Path) -> None:
    for path in HANDOVER.parent.glob("Handover*"):
        (tmp_path / path.name).write_text(path.read_text(encoding="utf-8"), encoding="utf-8")
    cache = tmp_path / "Handover-cache.sm"
    text = cache.read_text(encoding="utf-8")
    for old, new in (("Sequencer * sequencer;", "Sequencer * sequencer;\n      Sequencer * sequencer1;"),
                     ("  Tick clockEdge();", "  Tick clockEdge();\n  Tick cyclesToTicks(Cycles c);"),
                     ("        if (is_valid(cache_entry) || cacheMemory", "        if (in_msg.contextId == 0) {\n"
                      "          mandatoryQueue_in.recycle(clockEdge(), cyclesToTicks(recycle_latency));\n"
                      "        } else if (is_valid(cache_entry) || cacheMemory")):
        assert text.count(old) == 1
        text = text.replace(old, new)
    cache.write_text(text, encoding="utf-8")
    made = buildproto.ensure_protocol(str(tmp_path / HANDOVER.name))
    machine = config.replace(config.load_machine("opteron48"), protocol=config.Name(made.name))
    interface = json.loads(made.interface.read_text(encoding="utf-8"))
    subject = Subject(machine, interface, config.elaborate(machine, interface), made.checking(), 1)
    with pytest.raises(ProtocolError, match="no progress: a request of L1Cache-0 for line"):
        run_script(subject, parse("c0 ld A@n0", machine), "c0 ld A@n0")


@pytest.mark.parametrize("script", [False, True], ids=["random", "script"])
def test_slow_links_are_not_lost_requests(script: bool) -> None:
    subject = prepare("MSI", "small", ["links.latency=1ms"])
    if script:
        stores = (Played(0, 0, "st", 0x10000, 8, 1), Played(1, subject.machine["cores"] - 1, "st", 0x10000, 8, 1))
        assert not Player(subject).play(Candidate(stores)).kind
    else:
        assert not random_test(subject.leave_out(subject.abilities.left_out()), 200)["violations"]


def test_the_l3_of_the_largest_chip_has_a_free_tbe_for_each_requested_line() -> None:
    most = ["chips=1", "topology=", "cores_per_chip=253", "outstanding_misses=63", "l1d_prefetch.buffers=64"]
    machine = prepare("MOESI_HTAssist", "small", most).machine
    l3 = next(c["params"] for c in machine["controllers"] if c["machine"] == "L3Cache")
    assert l3["free_tbes"] >= machine["cores"] * (machine["outstanding_misses"] + 64)
    assert l3["number_of_TBEs"] - l3["free_tbes"] == 1024  # in use before fills have to wait, as docs/warts.md says
