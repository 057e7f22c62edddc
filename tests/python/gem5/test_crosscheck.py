# SPDX-License-Identifier: BSD-3-Clause
"""`moscope crosscheck` against a stand-in for gem5 that answers what the embedded engine did, or something else; and
the invariants, each broken on purpose."""

import json
import subprocess
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from moscope import buildproto, jsonio
from moscope.config import load_machine
from moscope.gem5 import crosscheck, invariants, sequences
from moscope.gem5.job import ScriptedAccess
from moscope.gem5.observed import Observed
from moscope.gem5.trace import Transition

Fake = Callable[..., Path]
Moscope = Callable[..., subprocess.CompletedProcess[str]]
ACCESSES = 300
STEP_FS = 10**10


@pytest.fixture(scope="module")
def subject() -> crosscheck.Subject:
    return crosscheck.prepare(load_machine("small"), "tiny", 1, lambda text: None)


@pytest.fixture(scope="module")
def accesses(subject: crosscheck.Subject) -> list[ScriptedAccess]:
    return crosscheck.random_accesses(subject, ACCESSES, "tiny", False)


@pytest.fixture(scope="module")
def ours(subject: crosscheck.Subject, accesses: list[ScriptedAccess]) -> Observed:
    return crosscheck.on_engine(subject, accesses)


def as_gem5_writes(seen: Observed, accesses: list[ScriptedAccess], folder: Path, change: Callable[[int, str], str]) -> Path:
    """The files of a gem5 that did the same, but for what `change` makes of a line of the trace of a step. A
    read-modify-write of gem5's player reports the value before."""
    folder.mkdir()
    trace, answers, stats = [], [], []
    for step, transitions in enumerate(seen.steps):
        begin = (step + 1) * STEP_FS
        read = seen.values[step] - 1 if accesses[step].op == "rmw" else seen.values[step]
        answers.append(f"{step} {begin} {begin + seen.latencies_fs[step]} {0 if accesses[step].op in ('st', 'flush') else read}")
        for t in transitions.elements():
            line = f"{begin + 1:15} {t.version:3} {t.machine:>10}{t.event:>20} {t.state:>6}>{t.next:<6} [{t.line:#x}, line {t.line:#x}] "
            trace.append(change(step, line))
    for (machine, buffer), count in seen.received.items():
        stats.append(f"system.ruby.{machine}_0.{buffer}.m_msg_count  {count}  # messages")
    (folder / "trace.txt").write_text("\n".join(trace) + "\n")
    (folder / "accesses.txt").write_text("\n".join(answers) + "\n")
    (folder / "stats.txt").write_text("\n".join(stats) + "\n")
    return folder


def check(moscope: Moscope, gem5: Path, *options: str) -> tuple[int, dict[str, Any]]:
    got = moscope("crosscheck", "--machine", "small", "--accesses", str(ACCESSES), "--gem5", str(gem5), "--json", *options)
    assert got.stdout, got.stderr
    document: dict[str, Any] = json.loads(got.stdout)
    jsonio.validate(document)
    return got.returncode, document


def in_order_of_values(seen: Observed, accesses: list[ScriptedAccess]) -> Observed:
    """What a store has left when a read-modify-write of gem5 writes its number, where the engine's adds one."""
    memory: dict[int, int] = {}
    values = []
    for number, a in enumerate(accesses):
        values.append({"st": number + 1, "flush": 0}.get(a.op, memory.get(a.address, 0) + (a.op == "rmw")))
        if a.op in ("st", "rmw"):
            memory[a.address] = number + 1
    return Observed(seen.steps, seen.latencies_fs, values, seen.states, seen.received)


def test_a_gem5_that_does_the_same_is_in_agreement(moscope: Moscope, fake_gem5: Fake, tmp_path: Path, ours: Observed,
                                                   accesses: list[ScriptedAccess]) -> None:
    files = as_gem5_writes(in_order_of_values(ours, accesses), accesses, tmp_path / "files", lambda step, line: line)
    code, document = check(moscope, fake_gem5(files=files))
    assert code == 0 and document["ok"], document
    assert document["transitions_equal"] and document["states_equal"] and document["messages_equal"]
    assert document["first_difference"] is None and document["latency_max_error"] == 0
    assert document["accesses"] == ACCESSES
    assert (tmp_path / "moscope-out/crosscheck/crosscheck.json").is_file()
    assert not (tmp_path / "moscope-out/crosscheck/gem5/trace.txt").exists()


def test_a_protocol_is_given_by_its_file_and_gets_no_flushes_that_it_does_not_take(moscope: Moscope, fake_gem5: Fake,
                                                                                   tmp_path: Path) -> None:
    path = f"protocol={buildproto.known_protocols()['MSI']}"
    subject = crosscheck.prepare(load_machine("small", [path]), "tiny", 1, lambda text: None)
    accesses = crosscheck.random_accesses(subject, ACCESSES, "tiny", False)
    assert {a.op for a in accesses} == {"ld", "st", "if", "rmw"}
    seen = in_order_of_values(crosscheck.on_engine(subject, accesses), accesses)
    files = as_gem5_writes(seen, accesses, tmp_path / "files", lambda step, line: line)
    code, document = check(moscope, fake_gem5(files=files, protocol="MSI"), "--set", path)
    assert code == 0 and document["ok"] and document["protocol"] == "MSI", document


def test_the_first_access_that_differs_is_shown_with_its_transitions(moscope: Moscope, fake_gem5: Fake, tmp_path: Path,
                                                                     ours: Observed, accesses: list[ScriptedAccess]) -> None:
    at = next(n for n, a in enumerate(accesses) if n > 100 and a.op == "ld")
    files = as_gem5_writes(in_order_of_values(ours, accesses), accesses, tmp_path / "files",
                           lambda step, line: line.replace("Load", "Loadx") if step >= at else line)
    code, document = check(moscope, fake_gem5(files=files))
    assert code == 1 and not document["ok"] and not document["transitions_equal"]
    first = document["first_difference"]
    assert first["access"] == at and first["text"].startswith(f"c{accesses[at].core} ld")
    assert any("Load " in line for line in first["only_moscope"]) and all("Loadx" in line for line in first["only_gem5"])


def test_a_value_that_was_never_written_is_found(moscope: Moscope, fake_gem5: Fake, tmp_path: Path, ours: Observed,
                                            accesses: list[ScriptedAccess]) -> None:
    files = as_gem5_writes(in_order_of_values(ours, accesses), accesses, tmp_path / "files", lambda step, line: line)
    at = next(n for n, a in enumerate(accesses) if n > 100 and a.op == "ld")
    lines = (files / "accesses.txt").read_text().splitlines()
    lines[at] = " ".join([*lines[at].split()[:3], "777777"])
    (files / "accesses.txt").write_text("\n".join(lines) + "\n")
    code, document = check(moscope, fake_gem5(files=files))
    assert code == 1 and not document["ok"] and document["transitions_equal"]
    assert "read 777777" in document["invariants"]["gem5"][0] and not document["invariants"]["moscope"]


def test_a_gem5_without_a_trace_is_no_agreement(moscope: Moscope, fake_gem5: Fake, tmp_path: Path, ours: Observed,
                                                accesses: list[ScriptedAccess]) -> None:
    files = as_gem5_writes(ours, accesses, tmp_path / "files", lambda step, line: "")
    got = moscope("crosscheck", "--machine", "small", "--accesses", str(ACCESSES), "--gem5", str(fake_gem5(files=files)))
    assert got.returncode == 5 and "no transition" in got.stderr


def test_answers_that_are_missing_are_noticed(moscope: Moscope, fake_gem5: Fake, tmp_path: Path, ours: Observed,
                                              accesses: list[ScriptedAccess]) -> None:
    files = as_gem5_writes(ours, accesses, tmp_path / "files", lambda step, line: line)
    (files / "accesses.txt").write_text("0 1 2 0\n")
    got = moscope("crosscheck", "--machine", "small", "--accesses", str(ACCESSES), "--gem5", str(fake_gem5(files=files)))
    assert got.returncode == 5 and f"answered 1 of {ACCESSES}" in got.stderr


def test_wrong_options_are_refused_before_anything_runs(moscope: Moscope, fake_gem5: Fake) -> None:
    for options in (("--accesses", "0"), ("--caches", "huge"), ("--script", "c0 ld"), ("--script", "c0 nt A@n0"), ("--machine", "smal")):
        got = moscope("crosscheck", "--gem5", str(fake_gem5()), *options)
        assert got.returncode == 2 and "Traceback" not in got.stderr


def test_the_engine_keeps_the_invariants_with_all_cores_at_the_same_time(subject: crosscheck.Subject) -> None:
    together = crosscheck.random_accesses(subject, 2000, "tiny", True)
    seen = crosscheck.on_engine(subject, together)
    assert not invariants.value_faults(together, seen.values, True)
    assert not invariants.state_faults(seen, subject.interface)


def test_the_same_seed_makes_the_same_accesses_and_another_does_not(subject: crosscheck.Subject) -> None:
    first, again, other = (sequences.one_at_a_time(subject.machine, 50, seed, "tiny") for seed in (1, 1, 2))
    assert first == again != other


def test_accesses_together_are_at_most_one_per_core_and_step(subject: crosscheck.Subject) -> None:
    made = sequences.together(subject.machine, 100, 1, "tiny")
    assert len(made) == 100
    assert max(Counter((a.step, a.core) for a in made).values()) == 1


LINE = 0x40


def states(**held: str) -> Observed:
    """Lines as the keys say: MACHINE_VERSION=STATE."""
    places = {(name.split("_")[0], int(name.split("_")[1]), LINE): state for name, state in held.items()}
    return Observed([], [], [], places)


@pytest.mark.parametrize("left, what", [
    (states(L1Cache_0="M", L1Cache_1="S"), "while others have copies"),
    (states(L1Cache_0="O", L3Cache_1="O"), "several owners"),
    (states(L1Cache_0="IS"), "in a transient state"),
    (states(L1Cache_0="E", Directory_0="S"), "its home says S"),
])
def test_states_that_exclude_each_other_are_found(subject: crosscheck.Subject, left: Observed, what: str) -> None:
    assert [what in fault for fault in invariants.state_faults(left, subject.interface)] == [True]


def test_states_that_go_together_are_no_fault(subject: crosscheck.Subject) -> None:
    held = states(L1Cache_0="O", L1Cache_1="S", L3Cache_0="S", Directory_0="O")
    assert not invariants.state_faults(held, subject.interface)


def accessed(*texts: str) -> list[ScriptedAccess]:
    """STEP CORE OP of one word."""
    return [ScriptedAccess(int(s), int(c), op, LINE) for s, c, op in map(str.split, texts)]


def test_a_load_at_the_same_time_as_a_store_may_see_either_value() -> None:
    made = accessed("0 0 st", "1 1 ld", "1 0 st")
    for seen in (1, 3):
        assert not invariants.value_faults(made, [0, seen, 0], False)
    assert invariants.value_faults(made, [0, 2, 0], False)


def test_a_load_after_a_store_may_not_see_what_was_before() -> None:
    made = accessed("0 0 st", "1 0 st", "2 1 ld")
    assert not invariants.value_faults(made, [0, 0, 2], False)
    assert invariants.value_faults(made, [0, 0, 1], False)


def test_loads_after_two_stores_at_the_same_time_agree_on_who_was_last() -> None:
    made = accessed("0 0 st", "0 1 st", "1 0 ld", "2 1 ld")
    assert not invariants.value_faults(made, [0, 0, 2, 2], False)
    assert invariants.value_faults(made, [0, 0, 2, 1], False)


def test_a_transition_is_compared_with_its_controller_and_line() -> None:
    one = Transition("L1Cache", 0, "Load", "I", "IS", LINE)
    steps = [Counter([one])], [Counter([Transition("L1Cache", 1, "Load", "I", "IS", LINE)])]
    made = accessed("0 0 ld")
    difference = crosscheck.first_difference(made, Observed(steps[0], [], [], {}), Observed(steps[1], [], [], {}))
    assert difference is not None and difference["only_moscope"] == [f"L1Cache-0 I Load -> IS {LINE:#x}"]
