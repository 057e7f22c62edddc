# SPDX-License-Identifier: BSD-3-Clause
"""`moscope protocol verify`: the project's protocols hold in every state of a small machine, and seeded faults are found."""

import json
import re
import shutil
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import mutations_verify
import pytest
from mutations import ALL, SMALL, Mutation

import moscope as package
from moscope import buildproto, config, jsonio
from moscope.protocol import check, verify, verify_script

Moscope = Callable[..., subprocess.CompletedProcess[str]]


def verified(moscope: Moscope, protocol: str, *options: str, sets: tuple[str, ...] = (), limit_s: float = 120) -> dict[str, Any]:
    """The document of an exploration, checked against its schema."""
    given = [part for key in sets for part in ("--set", key)]
    got = moscope("protocol", "verify", protocol, "--json", "--shrink", "0", *options, *given, timeout=limit_s)
    assert got.returncode in (0, 1), got.stderr
    document: dict[str, Any] = json.loads(got.stdout)
    jsonio.validate(document)
    assert document["ok"] == (got.returncode == 0)
    return document


def mutated(mutation: Mutation, folder: Path) -> str:
    """A copy of the mutated protocol's files; the path of its .slicc file."""
    source = buildproto.known_protocols()[mutation.protocol]
    for path in source.parent.glob(f"{mutation.protocol}*"):
        shutil.copy(path, folder)
    mutation.apply(folder)
    return str(folder / source.name)


def test_msi_holds_in_every_state_of_two_caches_and_two_transitions_need_a_third(moscope: Moscope) -> None:
    document = verified(moscope, "MSI")
    assert document["ok"] and document["complete"] and document["states"] > 4_000 and document["strict"]
    assert document["unreachable"] == ["Directory B_A x InvAck", "Directory B_O x PutM_Stale"]
    assert document["depth"] == 32


@pytest.mark.long
def test_symmetry_merges_states_that_differ_only_in_the_names_of_alike_cores(moscope: Moscope) -> None:
    with_names = verified(moscope, "MSI", "--no-symmetry", "--no-evict")
    without = verified(moscope, "MSI", "--no-evict")
    assert with_names["complete"] and without["complete"] and with_names["unreachable"] == without["unreachable"]
    assert without["states"] < with_names["states"] <= 2 * without["states"]


@pytest.mark.long
def test_verify_and_rumur_find_about_as_many_states_of_the_same_machine(tmp_path: Path, moscope: Moscope) -> None:
    """The same machine by hand in Murphi's language: about as many states, from two independent descriptions."""
    rumur = shutil.which("rumur")
    if rumur is None:
        pytest.skip("needs rumur")
    subprocess.run([rumur, "--threads", "1", "--output", str(tmp_path / "msi.c"), str(Path(__file__).parent / "murphi/MSI.m")], check=True)
    subprocess.run(["gcc", "-std=c11", "-O3", "-mcx16", str(tmp_path / "msi.c"), "-o", str(tmp_path / "msi"), "-lpthread", "-latomic"],
                   check=True)
    began = time.monotonic()
    said = subprocess.run([str(tmp_path / "msi")], capture_output=True, text=True, check=True).stdout
    seconds = time.monotonic() - began
    found = re.search(r"(\d+) states, (\d+) rules fired", said)
    assert found and "No error found" in said, said
    ours = verified(moscope, "MSI", "--caches", "3", "--threads", "1")
    print(f"rumur: {int(found[1]) / seconds:,.0f} states/s, {int(found[2]) / seconds:,.0f} steps/s; "
          f"verify: {ours['states'] / ours['seconds']:,.0f} states/s, {ours['steps_taken'] / ours['seconds']:,.0f} steps/s")
    assert abs(int(found[1]) / ours["states"] - 1) < 0.1


def test_a_fault_is_shown_by_its_shortest_way(moscope: Moscope, tmp_path: Path) -> None:
    """A store to a shared line that leaves the other sharer alone: a load and a store. The violation has the names of the steps."""
    fault = Mutation("kept-copy", "MSI", "transition(S, Inv, I) { ev_lineLost; ia_sendInvAck; dc_deallocate; pf_popForward; }",
                     "transition(S, Inv, S) { ia_sendInvAck; pf_popForward; }", "a sharer keeps its copy")
    document = verified(moscope, mutated(fault, tmp_path), "--no-evict", "--lines", "2")
    assert not document["ok"] and not document["complete"]
    assert document["violation"].startswith("two copies: ")
    asked = [s["what"] for s in document["steps"] if " asks: " in s["what"]]
    assert len(asked) == 2 and sum("ST of line 1" in a for a in asked) == 1
    assert any("Inv in S" in t for s in document["steps"] for t in s["transitions"])
    (store,) = (s for s in document["steps"] if s.get("request") == "ST")
    assert f"L1Cache-{store['core']} may write line {store['line']} " in document["violation"]


def test_a_lost_answer_is_reported_as_stuck(moscope: Moscope, tmp_path: Path) -> None:
    fault = Mutation("no-unblock", "MSI",
                     "transition(IS, Data, S) { wd_writeData; lm_loadMissDone; us_sendUnblockS; pr_popResponse; wk_wake; }",
                     "transition(IS, Data, S) { wd_writeData; lm_loadMissDone; pr_popResponse; wk_wake; }", "no unblock after a load")
    document = verified(moscope, mutated(fault, tmp_path), "--no-evict")
    assert not document["ok"] and re.fullmatch(r"stuck: core \d waits for line 1, and nothing can happen", document["violation"])
    assert any(re.fullmatch(r"Directory-0: line 1 in B_\w+", text) for text in document["end"]["states"])
    assert any(re.fullmatch(r"\w+ for line 1 from L1Cache-\d to Directory-0\.\w+: stalled|\w+ for line 1 from L1Cache-\d to "
                            r"Directory-0\.\w+: set aside until .*", text) for text in document["end"]["messages"]), document["end"]


@pytest.mark.long
def test_a_step_that_changes_nothing_is_shown_where_a_core_waits_forever(moscope: Moscope, tmp_path: Path) -> None:
    fault = Mutation("polls", "MSI", "transition(S, Inv, I) { ev_lineLost; ia_sendInvAck; dc_deallocate; pf_popForward; }",
                     "transition(S, Inv, S) { }", "a sharer takes an invalidation again and again")
    document = verified(moscope, mutated(fault, tmp_path), "--no-evict")
    assert re.fullmatch(r"stuck: core \d waits for line 1, and the only steps change nothing: L1Cache-\d: Inv in S, line 1",
                        document["violation"])
    assert any(text.endswith(": taken again and again") for text in document["end"]["messages"])


@pytest.mark.parametrize("options, said", [
    (("--caches", "9"), "--caches: 9: expected 1 to 8"),
    (("--caches", "3", "--chips", "2"), "--caches: 3 on 2 chips: expected a multiple of 2"),
    (("--requests", "ld,lt"), "lt"), (("--requests", "ld,nt,flush"), "nt, flush: the protocol has none: expected some of ld, st, if"),
    (("--counterexample", "no-folder/c.toml"), "no-folder"),
    (("--counterexample", "c.txt"), "c.txt: the name does not end in .toml: expected one that does, such as c.toml"),
    (("--device", "reed"), "reed"), (("--device", "read"), "no machine for devices"),
    (("--messages", "1"), "--messages: 1: expected 2 to 200"), (("--homes", "2"), "--homes: 2: expected 1, or more with --chips"),
    (("--seconds", "0"), "--seconds: 0: expected 1 or more"), (("--memory", "10MB"), "--memory: "),
    (("--shrink", f"{10**400}"), "expected 0 to 1000000000 seconds"),
])
def test_bounds_that_cannot_be_are_user_errors(moscope: Moscope, options: tuple[str, ...], said: str) -> None:
    got = moscope("protocol", "verify", "MSI", *options)
    assert got.returncode == 2 and said in got.stderr, got.stderr


def test_the_small_machine_does_not_inherit_a_routing_table(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text("from opteron48 import machine as base\nfrom moscope.config import *\n"
                    "machine = replace(base, routing=Routing.parse([list(row) for row in base.routes()]))\n")
    assert config.load_machine(str(file), verify.shape(verify.Bounds())).routing.kind == "auto"


def test_a_bound_that_is_reached_is_stated(moscope: Moscope) -> None:
    document = verified(moscope, "MSI", "--memory", "1MiB")
    assert document["ok"] and not document["complete"] and document["memory"] <= 2 << 20 and document["limit"] == "memory"


@pytest.mark.long
@pytest.mark.parametrize(("caches", "states"), [("6", 10_000), ("8", 100)])
def test_most_of_the_time_remains_after_the_symmetry_of_many_caches_is_tried(moscope: Moscope, caches: str, states: int) -> None:
    """Six caches have 720 renamings, and trying them took more than a minute; eight have 40 320, more than compilers evaluate."""
    document = verified(moscope, "MSI", "--caches", caches, "--seconds", "10")
    assert document["ok"] and not document["complete"] and document["seconds"] < 60 and document["states"] > states


@pytest.mark.long
@pytest.mark.parametrize("protocol, options, sets", [
    ("MSI", ("--caches", "3"), ()),
    ("MOESI_HTAssist", ("--caches", "3", "--chips", "3"), ()),  # 151 million states: half an hour
    ("MOESI_HTAssist", ("--caches", "2", "--chips", "2"), ("probe_filter.enabled=false",)),
])
def test_a_larger_machine_holds_in_every_state(moscope: Moscope, protocol: str, options: tuple[str, ...], sets: tuple[str, ...]) -> None:
    document = verified(moscope, protocol, *options, sets=sets, limit_s=4000)
    assert document["ok"] and document["complete"], document["violation"]


@pytest.mark.long
@pytest.mark.parametrize("sets", [(), ("probe_filter.enabled=false",)])
def test_a_device_and_two_cores_hold_in_every_state(moscope: Moscope, sets: tuple[str, ...]) -> None:
    document = verified(moscope, "MOESI_HTAssist", "--device", "read,write,part", "--no-evict", sets=sets)
    assert document["ok"] and document["complete"] and document["liveness"], document["violation"]
    assert document["device"] == ["read", "write", "part"]


@pytest.mark.parametrize("protocol, caches, chips, requests, walks", [
    ("MSI", 3, 1, "ld,st", 5),
    pytest.param("MSI", 3, 1, "ld,st", 300, marks=pytest.mark.long),
    pytest.param("MOESI_HTAssist", 3, 3, "ld,st", 200, marks=pytest.mark.long),
    pytest.param("MOESI_HTAssist", 4, 2, "ld,st", 200, marks=pytest.mark.long),
    pytest.param("MOESI_HTAssist", 3, 2, "ld,st,nt,uncached", 200, marks=pytest.mark.long),
])
def test_the_engine_takes_the_transitions_of_random_walks_of_the_model(
        protocol: str, caches: int, chips: int, requests: str, walks: int) -> None:
    bounds = verify.Bounds(caches, chips, requests=tuple(requests.split(",")), evict=False, symmetry=False)
    program = verify.build(protocol, "opteron48", [], bounds, print)
    subject = check.prepare(protocol, "opteron48", verify.shape(bounds), homes=1)
    for seed in range(1, walks + 1):
        way = verify.walk(program, seed, 40)
        played = verify_script.candidate(way, subject)
        assert played is not None
        outcome, taken = verify_script.transitions(subject, played)
        assert not outcome.kind, f"seed {seed}: {outcome.text}"
        expected = [t.split(", line")[0] for step in way for t in step["transitions"]]
        # The model's DRAM answers in any order; that of the engine takes a write at once.
        assert [t for t in taken if "Mem_Ack" not in t] == [t for t in expected if "Mem_Ack" not in t], f"seed {seed}"


@pytest.mark.long
@pytest.mark.parametrize("fault, options, said", [
    (Mutation("kept-copy", "MSI", "transition(S, Inv, I) { ev_lineLost; ia_sendInvAck; dc_deallocate; pf_popForward; }",
              "transition(S, Inv, S) { ia_sendInvAck; pf_popForward; }", "a sharer keeps its copy"), (), "more than one copy"),
    (mutations_verify.NT_WITHOUT_PROBE, mutations_verify.NT_WITHOUT_PROBE.needs, "found the initial value; expected"),
], ids=lambda x: x.name if isinstance(x, Mutation) else "")
def test_a_violation_has_a_script_that_repeats_it_on_the_engine(
        moscope: Moscope, tmp_path: Path, fault: Mutation, options: tuple[str, ...], said: str) -> None:
    file = tmp_path / "kept.toml"
    got = moscope("protocol", "verify", mutated(fault, tmp_path), *options, "--no-evict", "--json", "--counterexample", str(file))
    assert got.returncode == 1 and json.loads(got.stdout)["counterexample"] == str(file), got.stderr
    replayed = moscope("trace", str(file))
    assert replayed.returncode == 1 and said in replayed.stdout, replayed.stdout


def test_in_python_a_violation_is_a_result_with_the_path_to_it(tmp_path: Path) -> None:
    fault = next(m for m in mutations_verify.ALL if m.name in QUICK)
    found = package.verify(mutated(fault, tmp_path), progress=False)
    assert not found.ok and found.violation and found.steps[-1]["transitions"]
    assert found.document["counterexample"] is None and found.violation in found._repr_html_()


#: Of the faults, those that every run of the tests looks for: one machine each, found in less than a second after the compilation.
QUICK = ("msi-late-put-writes",)


@pytest.mark.parametrize("mutation", [pytest.param(m, id=m.name, marks=[] if m.name in QUICK else [pytest.mark.long])
                                      for m in (*ALL, *mutations_verify.ALL)])
def test_every_seeded_fault_is_found_or_proved_harmless(moscope: Moscope, tmp_path: Path, mutation: Mutation) -> None:
    path = mutated(mutation, tmp_path)
    for options in [mutation.needs] if mutation.needs else SMALL[mutation.protocol]:
        document = verified(moscope, path, *options, "--seconds", "300", sets=mutation.sets)
        print(f"{mutation.name}: {' '.join(options)}: {document['states']} states, {len(document['steps'])} steps: {document['violation']}")
        if mutation.harmless:
            assert document["ok"] and document["complete"], f"{mutation.name}: {mutation.what}: expected harmless: {mutation.harmless}"
        elif not document["ok"]:
            return
    assert mutation.harmless, f"{mutation.name}: {mutation.what}: not found"


@pytest.mark.parametrize("mutation", mutations_verify.ALL, ids=lambda m: m.name)
def test_each_mutation_for_verify_still_fits_its_protocol(mutation: Mutation, tmp_path: Path) -> None:
    mutated(mutation, tmp_path)


@pytest.mark.parametrize("protocol, options", [
    ("MSI", ()),
    pytest.param("MSI", ("--caches", "3"), marks=pytest.mark.long),
    pytest.param("MOESI_HTAssist", ("--chips", "2"), marks=pytest.mark.long),
])
def test_threads_and_reductions_change_neither_verdict_nor_transitions(moscope: Moscope, protocol: str, options: tuple[str, ...]) -> None:
    one = verified(moscope, protocol, *options, "--threads", "1")
    two = verified(moscope, protocol, *options, "--threads", "2")
    assert {**one, "seconds": 0, "memory": 0} == {**two, "seconds": 0, "memory": 0}
    full = verified(moscope, protocol, *options, "--no-reduce", "--no-symmetry")
    assert one["ok"] and full["ok"] and one["complete"] and full["complete"] and one["liveness"]
    assert one["unreachable"] == full["unreachable"] and one["states"] < full["states"]
