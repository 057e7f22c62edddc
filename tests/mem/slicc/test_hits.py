# SPDX-License-Identifier: BSD-3-Clause
"""A (state, event) pair is a pure hit only if its transition keeps the state and only calls back, updates the replacement order
and pops; and only if the mandatory in_port has no side effect before its trigger."""
from __future__ import annotations

from pathlib import Path

import pytest

from slicc.compile import compile_protocol
from slicc.hits import HitAnalysis, analyse_hits

FOLDER = Path(__file__).parent / "protocols"
ACTIONS = (FOLDER / "common" / "actions.sm").read_text()


def analysed(tmp_path: Path, actions: str, cache: str | None = None, extra: str = "") -> HitAnalysis:
    """The cache of cache.sm with other actions, or another body."""
    common = tmp_path / "common"
    common.mkdir()
    for part in ("messages", "cache"):
        (common / f"{part}.sm").write_text((FOLDER / "common" / f"{part}.sm").read_text())
    if cache is not None:
        (common / "cache.sm").write_text(cache)
    (common / "actions.sm").write_text(actions + extra)
    path = tmp_path / "ok_plain.slicc"
    path.write_text((FOLDER / "ok_plain.slicc").read_text())
    program, diagnostics = compile_protocol(str(path))
    assert program is not None, diagnostics.report()
    return analyse_hits(program.machines[0])


def pairs(analysis: HitAnalysis) -> dict[tuple[str, str], str]:
    return {(hit.state.name, hit.event.name): hit.callback for hit in analysis.hits}


def replaced(old: str, new: str, text: str = ACTIONS) -> str:
    assert old in text
    return text.replace(old, new)


def test_loads_and_stores_of_a_modified_line_are_pure(tmp_path: Path) -> None:
    analysis = analysed(tmp_path, ACTIONS)
    assert pairs(analysis) == {("M", "Load"): "read", ("M", "Store"): "write"}
    assert analysis.port is not None and analysis.port.name == "mandatory_in" and analysis.block_on == "LineAddress"
    assert [param.name for param in analysis.hits[0].touches] == ["cache"]


def test_with_two_fields_of_data_in_an_entry_no_hit_is_pure(tmp_path: Path) -> None:
    """Which of two holds the line's bytes may depend on the state."""
    cache = (FOLDER / "common" / "cache.sm").read_text()
    field = next(line for line in cache.splitlines(keepends=True) if "DataBlock" in line and "DataBlk" in line)
    assert not pairs(analysed(tmp_path, ACTIONS, cache=cache.replace(field, field + field.replace("DataBlk", "OldBlk"), 1)))


def test_a_store_that_changes_the_state_is_not_pure(tmp_path: Path) -> None:
    assert ("M", "Store") not in pairs(analysed(tmp_path, replaced("transition(M, Store) {", "transition(M, Store, IM) {")))


def test_a_hit_without_a_pop_is_not_pure(tmp_path: Path) -> None:
    assert ("M", "Load") not in pairs(analysed(tmp_path, replaced("  loaded;\n  pop_request;", "  loaded;")))


def test_a_hit_that_pops_another_port_is_not_pure(tmp_path: Path) -> None:
    assert ("M", "Load") not in pairs(analysed(tmp_path, replaced("  loaded;\n  pop_request;", "  loaded;\n  pop_response;")))


def test_a_hit_that_calls_back_twice_is_not_pure(tmp_path: Path) -> None:
    assert ("M", "Load") not in pairs(analysed(tmp_path, replaced("  loaded;\n  pop_request;", "  loaded;\n  stored;\n  pop_request;")))


def test_an_external_hit_is_not_pure(tmp_path: Path) -> None:
    actions = replaced("readCallback(address, cache_entry.DataBlk)", "readCallback(address, cache_entry.DataBlk, true)")
    assert ("M", "Load") not in pairs(analysed(tmp_path, actions))


def test_a_hit_with_data_from_elsewhere_than_the_entry_is_not_pure(tmp_path: Path) -> None:
    actions = replaced("readCallback(address, cache_entry.DataBlk)", "readCallback(address, tbe.DataBlk)")
    assert ("M", "Load") not in pairs(analysed(tmp_path, actions))


@pytest.mark.parametrize("statement", ["tbe.Pending := 1;", "TBEs.allocate(address);", "wakeUpBuffers(address);",
                                       "cache.deallocate(address);", "sequencer.evictionCallback(address);",
                                       "if (eager) { cache.deallocate(address); }",
                                       "cache_entry.CacheState := getState(tbe, cache_entry, address);"])
def test_a_hit_with_another_side_effect_is_not_pure(tmp_path: Path, statement: str) -> None:
    actions = replaced("  cache.setMRU(cache_entry);\n  sequencer.read", f"  {statement}\n  sequencer.read")
    assert pairs(analysed(tmp_path, actions)) == {("M", "Store"): "write"}


@pytest.mark.parametrize("statement", ["cache.profileDemandHit();", 'DPRINTF(RubySlicc, "%s", address);', "assert(is_valid(cache_entry));",
                                       "Tick now := clockEdge();"])
def test_counting_printing_and_asserting_keep_a_hit_pure(tmp_path: Path, statement: str) -> None:
    actions = replaced("  cache.setMRU(cache_entry);\n  sequencer.read", f"  {statement}\n  sequencer.read")
    assert ("M", "Load") in pairs(analysed(tmp_path, actions))


def test_a_store_that_sets_the_dirty_flag_is_only_nearly_a_hit(tmp_path: Path) -> None:
    actions = replaced("  sequencer.write", "  cache_entry.Dirty := true;\n  sequencer.write")
    analysis = analysed(tmp_path, actions)
    assert ("M", "Store") not in pairs(analysis)
    assert [(hit.event.name, [field.name for field, _ in hit.writes]) for hit in analysis.nearly] == [("Store", ["Dirty"])]


def test_a_port_with_a_side_effect_before_its_trigger_has_no_hits(tmp_path: Path) -> None:
    cache = replaced("      Entry entry := getCacheEntry(in_msg.LineAddress);\n",
                     "      Entry entry := getCacheEntry(in_msg.LineAddress);\n      cache.setMRU(in_msg.LineAddress);\n",
                     (FOLDER / "common" / "cache.sm").read_text())
    analysis = analysed(tmp_path, ACTIONS, cache)
    assert not analysis.hits and not analysis.clean_events


def test_side_effects_on_the_path_to_a_replacement_keep_hits_pure(tmp_path: Path) -> None:
    cache = replaced("        Addr victim", "        cache.deallocate(in_msg.LineAddress);\n        Addr victim",
                     (FOLDER / "common" / "cache.sm").read_text())
    analysis = analysed(tmp_path, ACTIONS, cache)
    assert analysis.clean_events == {"Load", "Store"}


def test_a_stall_is_not_a_hit(tmp_path: Path) -> None:
    assert ("IM", "Load") not in pairs(analysed(tmp_path, ACTIONS))


PICK = "        trigger(request_to_event(in_msg.Type), in_msg.LineAddress, entry, TBEs[in_msg.LineAddress]);\n"
CACHE = (FOLDER / "common" / "cache.sm").read_text()


@pytest.mark.parametrize("condition", ["in_msg.contextId == 0", "in_msg.Size == 4", "in_msg.isSecure", "in_msg.PhysicalAddress == 8",
                                       "response_in.isReady(clockEdge())"])
def test_an_event_that_depends_on_more_than_a_probe_knows_is_not_a_hit(tmp_path: Path, condition: str) -> None:
    pick = f"        if ({condition}) {{\n  {PICK}        }} else {{\n  {PICK}        }}\n"
    assert not pairs(analysed(tmp_path, ACTIONS, replaced(PICK, pick, CACHE)))


def test_hits_before_a_condition_that_a_probe_cannot_tell_stay_hits(tmp_path: Path) -> None:
    pick = f"        if (in_msg.Type == RubyRequestType:LD) {{\n  {PICK}        }} else if (in_msg.Size == 4) {{\n  {PICK}        }}\n"
    assert analysed(tmp_path, ACTIONS, replaced(PICK, pick, CACHE)).clean_events == {"Load", "Store"}


def test_an_event_chosen_by_what_another_port_holds_is_not_a_hit(tmp_path: Path) -> None:
    pick = f"        peek(response_in, Msg) {{\n          DPRINTF(RubySlicc, \"%s\", in_msg.Type);\n        }}\n{PICK}"
    assert not pairs(analysed(tmp_path, ACTIONS, replaced(PICK, pick, CACHE)))


VARIABLES = """bool draining, default="false";
TimerTable leases;
Cycles curCycle();
bool isDraining() {
  return draining;
}

"""


def with_variables(cache: str) -> str:
    """A cache with a variable, a table of timers, the clock and the number of its free TBEs."""
    counts = replaced("  bool isPresent(Addr);\n", "  bool isPresent(Addr);\n  bool areNSlotsAvailable(int, Tick);\n", cache)
    return replaced("Event request_to_event", f"{VARIABLES}Event request_to_event", counts)


@pytest.mark.parametrize(("condition", "pure"), [("draining", False), ("isDraining()", False), ("curCycle() > intToCycles(5000)", False),
                                                 ("TBEs.areNSlotsAvailable(2, clockEdge())", False),
                                                 ("leases.isReady(clockEdge())", False), ("leases.isSet(in_msg.LineAddress)", True),
                                                 ("TBEs.isPresent(in_msg.LineAddress)", True)])
def test_an_event_that_may_change_without_a_transition_of_the_line_is_not_a_hit(tmp_path: Path, condition: str, pure: bool) -> None:
    """A port remembers a hit until such a transition."""
    pick = f"        if ({condition}) {{\n  {PICK}        }} else {{\n  {PICK}        }}\n"
    assert bool(pairs(analysed(tmp_path, ACTIONS, with_variables(replaced(PICK, pick, CACHE))))) == pure


def test_with_states_that_end_with_time_no_hit_is_pure(tmp_path: Path) -> None:
    state = "  if (is_valid(tbe)) {\n    return tbe.TBEState;"
    cache = replaced(state, "  if (curCycle() > intToCycles(5000)) {\n    return State:I;\n  }\n" + state,
                     replaced("Tick clockEdge();\n", "Tick clockEdge();\nCycles curCycle();\n", CACHE))
    assert not pairs(analysed(tmp_path, ACTIONS, cache))
