# SPDX-License-Identifier: BSD-3-Clause
"""Loading machines: a valid file loads; a wrong one gives one clean error with file, line and what is expected."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from moscope.config import dram, load, load_machine
from moscope.config.dram import dram_json
from moscope.errors import UserError
from moscope.schema.hierarchy import replacement_policies

BASE = "from opteron48 import machine as base\nfrom moscope.config import *\n"


def write(folder: Path, text: str | bytes, name: str = "mine.py") -> str:
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return str(path)


def refused(name_or_path: str, *sets: str) -> str:
    with pytest.raises(UserError) as error:
        load_machine(name_or_path, sets)
    text = str(error.value)
    assert "\n" not in text
    assert "Traceback" not in text
    assert text.count(": ") >= 2, text  # file: problem: expected ...
    return text


def test_a_copy_with_another_list_of_edges_is_another_machine(tmp_path: Path) -> None:
    path = write(tmp_path, BASE + 'machine = replace(base, name="mine", topology="0-1 1-2 2-3 3-4 4-5 5-6 6-7")\n')
    assert max(map(max, load_machine(path).hops())) == 7


@pytest.mark.parametrize(
    ("key", "value", "get"),
    [
        ("probe_filter.enabled", "false", lambda m: bool(m.probe_filter.enabled) is False),
        ("topology", "straight_ladder", lambda m: m.topology.name == "straight_ladder"),
        ("topology", "0-1 0-2 1-3 2-3 2-4 3-5 4-5 4-6 5-7 6-7", lambda m: len(m.edges()) == 10),
        ("dram.channels", "1", lambda m: m.dram.channels == 1),
        ("links.clock", "2.4GHz", lambda m: m.links.clock.hertz == 2_400_000_000),
        ("core_clock", "2394454kHz", lambda m: m.core_clock.hertz == 2_394_454_000),
        ("links.credits.request", "1", lambda m: m.links.credits.request == 1),
        ("latencies.l3_hit", "40cycles", lambda m: m.latencies.l3_hit.count == 40),
        ("memory_per_node", "1GiB", lambda m: m.memory_per_node.bytes == 1 << 30),
        ("routing", "up_down", lambda m: m.routing.kind == "up_down"),
        ("references.l3", "40", lambda m: m.references.l3.count == 40),
        ("dram.settings.scheduler_depth", "4", lambda m: m.dram.settings == {"scheduler_depth": 4}),
        ("dram.settings.timing_fs.tRCD", "15ns", lambda m: dram_json(m.dram)["timing_fs"]["tRCD"] == 15_000_000),
        ("dram.settings.row_bytes", "2KiB", lambda m: dram_json(m.dram)["row_bytes"] == 2048),
        ("name", "mine", lambda m: m.name == "mine"),
        ("protocol", "MSI", lambda m: m.protocol == "MSI"),
        ("protocol", "/some where/X.slicc", lambda m: m.protocol == "/some where/X.slicc"),
    ],
)
def test_any_value_can_be_set(key: str, value: str, get: object) -> None:
    assert get(load_machine("opteron48", [f"{key}={value}"]))  # type: ignore[operator]


def test_a_value_given_by_set_has_that_as_its_source() -> None:
    assert load_machine("opteron48", ["dram.channels=1"]).dram.channels.source == "--set"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("probe_filter.enbled=false", "unknown key probe_filter.enbled: expected a known name, such as probe_filter.enabled"),
        ("chanels=1", "such as dram.channels"),
        ("channels=1", "such as dram.channels"),
        ("links.clock=16KiB", "links.clock: '16KiB' is a size: expected a frequency, such as 2.4GHz"),
        ("links.clock=2.4", "has no unit"),
        ("links=fast", "links is a group of values: expected one of links.width"),
        ("chips.x=1", "expected chips, a single value"),
        ("chips", "is not an assignment"),
        ("=1", "is not an assignment"),
        ("chips=-1", "not a count"),
        ("chips=0", "--set chips=0: chips: 0: expected 1 to 64"),
        ("crossbar.port=4294967295B", "crossbar.port: 4294967295B: expected 1B to 1GiB"),
        ("chips=9", "--set chips=9: topology: chip 8 has no path to chip 0"),
        ("l3.ways=3", "--set l3.ways=3: probe_filter.l3_ways: 8 of 3 ways"),
        ("l1d.ways=3", "--set l1d.ways=3: l1d.size: 64KiB in 3 ways of 64B makes 341.3333333 sets, not a power of two: expected 48KiB or "
         "96KiB"),
        ("l2.size=500KiB", "not a power of two"),
        ("l3.size=5000000B", "not a power of two: expected 3MiB or 6MiB"),
        ("probe_filter.l3_ways=48", "48 of 48 ways: expected 1 to 47"),
        ("probe_filter.l3_ways=7", "not a power of two"),
        ("topology=strait_ladder", "such as straight_ladder"),
        ("topology=0-1 2-3", "chips 2, 3, 4, 5, 6, 7 have no path to chip 0"),
        ("topology=magnycours_2p", "joins 4 chips, and the machine has 8"),
        ("routing=shortest", "cycle of links is 0>1"),
        ("routing=[[0]]", "8 rows of 8 next chips"),
        ("routing=[", "not a table|not known"),
        ("line=128B", "64B"),
        ("links.packets.response=0B", "links.packets.response: 0B: expected 1B to 64B"),
        ("links.credits.free=2000", "links.credits.free: 2000: expected 0 to 1024"),
        ("links.credits.per=x12", "a link of x16 is not made of links of x12"),
        ("links.credits.probe=0", "links.credits.probe: 0: expected 1 to 1024"),
        ("dram.standard=ddr2_80", "expected a known name, such as ddr2_800"),
        ("dram.channels=0", "1 or more"),
        ("dram.channels=3", "--set dram.channels=3: dram.channels: 3 is not a power of two: expected a power of two such as 2"),
        ("dram.settings.bypas_max=4",
         "--set dram.settings.bypas_max=4: dram.settings.bypas_max: unknown key: expected a known key such as bypass_max"),
        ("dram.settings.page_policy=idle", "--set dram.settings.page_policy=idle: dram.settings.idle_close_fs: is less than a clock"),
        ("dram.settings.timing_fs.tRCD=5m", "dram.settings.timing_fs.tRCD: '5m' has the unknown unit 'm': expected a time"),
        ("dram.settings.row_bytes=3KiB", "dram.settings.row_bytes: 3072B is not a power of two: expected a power of two such as 2048B"),
        ("dram.settings.timing_fs.tRCD=15us", "dram.settings.timing_fs.tRAS: is less than tRCD: expected at least 15000000000fs"),
        ("dram.settings.timing_fs.tRFC=8us",
         "--set dram.settings.timing_fs.tRFC=8us: dram.settings.timing_fs.tREFI: leaves too little time beside refreshes, each of which "
         r"takes tRFC \+ tRC: expected at least 32240000000fs, 0fs for no refresh, or a shorter tRFC"),
        ("dram.settings.read_entries=4", "scheduler_depth: is larger than read_entries: expected at most 4, or more read_entries"),
        ("dram.settings.tCK_fs=5", "dram.settings.tCK_fs: 5fs is out of range: expected 100000fs to 1000000000000fs"),
        ("protocol=some/where", "--set protocol=some/where: protocol: 'some/where' is not a name: expected a protocol's name, or the path"),
        ("links.width=x7", "'x7' is not a link width|'7bit' is not a link width"),
        ("cpu=opteron8413", "--set cpu=opteron8413: cpu: 'opteron8413' is not known: expected a known name, such as opteron8431"),
        ("memory_per_node=100B", "a multiple of 1MiB"),
        ("cores_per_chip=1000", "at most 256"),
        ("outstanding_misses=0", "--set outstanding_misses=0: outstanding_misses: 0: expected 1 to 63"),
        ("outstanding_misses=64", "--set outstanding_misses=64: outstanding_misses: 64: expected 1 to 63"),
        ("pipeline.store_buffer=0", "1 to 256"),
        ("pipeline.l1d_tlb=300", "1 to 256"),
        ("pipeline.interrupt=2ms", "at most 1ms"),
        ("pipeline.locked=2ns", "cycles"),
        ("pipeline.width=3", "pipeline.issue_width"),
        ("latencies.l1_hit=0", "1cycle to 1000000cycles"),
        ("crossbar.latency=0ns", "1fs to 1ms"),
        ("core_clock=2394454321Hz", "--set core_clock=2394454321Hz: core_clock: 2394454321Hz: the engine cannot count its edges exactly: "
         "expected a whole number of kilohertz"),
        ("nb_clock=2.2000000000000001GHz", "nb_clock: .*whole number of kilohertz"),
    ],
)
def test_a_wrong_option_is_answered_with_what_is_expected(text: str, says: str) -> None:
    assert re.search(says, refused("opteron48", text)), refused("opteron48", text)


def test_the_error_for_an_unknown_replacement_policy_lists_the_engines_policies() -> None:
    assert refused("opteron48", "l1d.replacement=mru").endswith(f": expected one of {', '.join(replacement_policies())}")


def test_a_steering_policy_that_the_engine_does_not_have_is_refused_when_a_machine_is_loaded() -> None:
    assert refused("opteron48", "nic.steering=spread").endswith(": 'spread': expected one of fixed-port, pin-every-20, rss")


@pytest.mark.parametrize("text", ["l3.size=5MiB", "l3.size=1B", "l3.ways=47", "l2.size=500KiB", "l1d.size=768MiB"])
def test_the_sizes_that_an_error_suggests_are_accepted(text: str) -> None:
    key, _, right = refused("opteron48", text).rpartition(": expected ")
    key = re.findall(r"\w+\.size", key)[-1]
    sizes = right.split(" or ")
    assert len(sizes) == 2
    for size in sizes:
        assert getattr(load_machine("opteron48", [text, f"{key}={size}"]), key.partition(".")[0]).size.bytes


def test_channels_that_a_line_does_not_fit_are_answered_with_those_that_it_does() -> None:
    text = refused("opteron48", "l2.ways=8", "dram.channels=4")
    assert text.startswith("--set dram.channels=4: dram.channels: 4 channels are ganged: ")
    assert text.endswith(": expected 1 or 2, or dram.settings.ganged=false")
    for right in ("dram.channels=1", "dram.channels=2", "dram.settings.ganged=false"):
        load_machine("opteron48", ["dram.channels=4", right])


@pytest.mark.parametrize(("text", "says"), [
    ("other = {}\n", "mine.py: defines no `dram`: expected a dictionary"),
    ("dram = 5\n", "mine.py: defines no `dram`: expected a dictionary"),
    ("x = 1\ndram = {\n", "mine.py:2: not Python: .*: expected a dictionary"),
    ("from _jedec import resolve\ndram = resolve(1.5, {'tCL': '7ns'})\n",
     "mine.py:2: TypeError: tCL: '7ns' is neither clocks .an int. nor nanoseconds"),
])
def test_a_file_of_dram_timings_that_is_wrong_is_refused_by_file_and_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str,
                                                                          says: str) -> None:
    monkeypatch.syspath_prepend(str(dram.standards_dir()))
    monkeypatch.setattr(dram, "standards_dir", lambda: tmp_path)
    write(tmp_path, text)
    assert re.search(says, refused("opteron48", "dram.standard=mine"))


def test_an_error_names_only_the_options_that_cause_it() -> None:
    assert refused("opteron48", "l2.ways=8", "chips=9", "dram.channels=1").startswith("--set chips=9: topology")


def test_edges_may_be_set_as_a_list_of_pairs() -> None:
    edges = load_machine("opteron48", ["topology=[(0, 1), (1, 2), (2, 3), (3, 4), (4, 5), (5, 6), (6, 7)]"]).edges()
    assert [(e.a, e.b) for e in edges] == [(n, n + 1) for n in range(7)]
    assert "topology: edge 0-99 names chip 99: expected numbers from 0 to 7" in refused("opteron48", "topology=[(0,99)]")
    assert "is not a list of edges: expected" in refused("opteron48", "topology=[(0,1")


def test_an_unknown_machine_is_answered_with_the_nearest() -> None:
    assert "such as opteron48" in refused("opteron84")


@pytest.mark.parametrize("name", ["", "nowhere/mine.py", "mine.py", "/", "\0", "..", "/dev/zero", "/dev/null.py"])
def test_what_is_no_machine_file_is_refused(name: str) -> None:
    refused(name)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("x = 1\n", "defines no machine: expected machine = Machine"),
        ("", "defines no machine"),
        ("machine = 5\n", "`machine` is of the type int: expected machine = Machine"),
        ("machine = (\n", "mine.py:1: not Python"),
        ("1/0\n", "mine.py:1: ZeroDivisionError: division by zero"),
        ("x = 1\nimport nonsense\n", "mine.py:2: ModuleNotFoundError"),
        ("import sys; sys.exit(0)\n", "SystemExit"),
        ("import os; os._exit(0)\n", "ended without an answer"),
        ("import os; os.abort()\n", "mine.py: the file"),
        ("input()\n", "EOFError"),
        ("raise KeyboardInterrupt\n", "KeyboardInterrupt"),
        ("def f(): f()\nf()\n", "RecursionError"),
        ("class E(Exception):\n  def __str__(self): raise self\nraise E\n", "mine.py:3: E"),
        ("x = bytearray(1 << 40)\n", "MemoryError"),
        (BASE + "machine = replace(base, core_per_chip=4)\n",
         "mine.py:3: Machine: unknown key 'core_per_chip': expected a known name, such as cores_per_chip"),
        (BASE + 'machine = replace(base, core_clock="5ns")\n', "mine.py:3: core_clock: '5ns' is a time"),
        (BASE + "machine = replace(base, l1d=5)\n", "mine.py:3: l1d: 5 is not of type Cache"),
        (BASE + "machine = replace(base, chips=4)\n", "mine.py: topology: edge"),
        (BASE + "machine = replace(base, chips=Size('4B'))\n", "chips: 4B is a size: expected a count"),
        (BASE + "machine = replace(5, chips=4)\n", "is not part of a machine description"),
        (BASE + "machine = Machine(name='x')\n", "mine.py:3: Machine: no value for protocol, chips"),
        (BASE + "machine = Machine(name='x', core_per_chip=4)\n",
         "mine.py:3: Machine: unknown key 'core_per_chip': expected a known name, such as cores_per_chip"),
        (BASE + "x = dict(\n  core_clock=Frequency('2.4GB'))\n", "mine.py:4: core_clock: '2.4GB' has the unknown unit 'GB'"),
        (BASE + "x = dict(a=1, links=dict(b=[Time('1cycle')]))\n", "mine.py:3: b: '1cycle'"),
        (BASE + "Size('64')\n", "mine.py:3: '64' has no unit"),
        ("edges = [\n  (0, 1),\n  (4, 6) (5, 7),\n]\n",
         "mine.py:3: two entries with nothing between them: expected a comma after the first"),
        (BASE + "machine = replace(base, params={'x': lambda: 1})\n", "values that are not descriptions"),
        (b"\xff\xfe\x00machine", "not Python"),
        (b"machine\0= 1", "not Python"),
        ("(" * 5000, "not Python"),
        ("x = " + "-" * 200_000 + "1\n", "not Python"),
        ("#" * (1 << 20) + "\n", "too many for a machine file"),
    ],
)
def test_a_wrong_file_is_refused_by_file_and_line(tmp_path: Path, text: str | bytes, says: str) -> None:
    message = refused(write(tmp_path, text))
    assert says in message
    assert "mine.py" in message


@pytest.mark.parametrize("text", ["while True: pass\n", "import time\ntime.sleep(60)\n", "x = 10 ** (10 ** 9)\n"])
def test_a_file_that_does_not_end_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setattr(load, "TIME_LIMIT", 0.5)
    message = refused(write(tmp_path, text))
    assert "did not finish within 0.5 s" in message


def test_what_a_file_prints_stays_off_stdout(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path = write(tmp_path, "print('hello')\nimport os; os.system('echo there')\n" + BASE + "machine = base\n")
    load_machine(path)
    assert capfd.readouterr().out == ""


def test_a_file_cannot_change_the_process_that_loads_it(tmp_path: Path) -> None:
    before = os.getcwd()
    load_machine(write(tmp_path, "import os; os.chdir('/')\n" + BASE + "machine = base\n"))
    assert os.getcwd() == before
    assert "opteron48" not in __import__("sys").modules


def test_a_file_may_register_a_topology_of_its_own(tmp_path: Path) -> None:
    text = "@topology('of_this_file')\ndef star(chips):\n    return [(0, c) for c in range(1, chips)]\n"
    path = write(tmp_path, BASE + text + "machine = replace(base, topology='of_this_file')\n")
    assert load_machine(path).hops()[1] == [1, 0, 2, 2, 2, 2, 2, 2]


def test_a_topology_of_a_file_does_not_take_the_name_of_a_built_in(tmp_path: Path) -> None:
    text = "@topology('ring')\ndef ring(chips):\n    return [(0, c) for c in range(1, chips)]\n"
    with pytest.raises(UserError, match="mine.py:.*topology: 'ring' is one of moscope's: expected another name"):
        load_machine(write(tmp_path, BASE + text + "machine = replace(base, topology='ring')\n"))


@pytest.mark.parametrize(("body", "says"), [("pass", "TypeError: 'NoneType' object is not iterable"),
                                            ("return [(0, 1 // (chips - 8))]", "ZeroDivisionError")])
def test_a_topology_that_fails_is_an_error_of_its_line(tmp_path: Path, body: str, says: str) -> None:
    text = f"@topology('mine')\ndef mine(chips):\n    {body}\n"
    with pytest.raises(UserError, match=rf"topology: mine \(.*mine.py:\d+\): {says}.*: expected edges for 8 chips"):
        load_machine(write(tmp_path, BASE + text + "machine = replace(base, topology='mine')\n"))


def test_loading_leaves_nothing_behind(tmp_path: Path) -> None:
    write(tmp_path, BASE + "machine = base\n", "base_machine.py")
    load_machine(write(tmp_path, "from base_machine import machine\n"))
    assert sorted(p.name for p in tmp_path.iterdir()) == ["base_machine.py", "mine.py"]


def test_a_width_that_no_link_takes_is_refused() -> None:
    with pytest.raises(UserError, match=r"--set links.width=x8: links.width: each edge of the topology has a width of its own"):
        load_machine("magnycours_4p", ["links.width=x8"])
    load_machine("magnycours_4p", ["links.clock=2.4GHz"])
    load_machine("magnycours_4p", ["links.width=x8", "topology=ring"])
