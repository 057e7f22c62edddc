# SPDX-License-Identifier: BSD-3-Clause
"""What a model makes of a protocol's text: changes of MSI whose consequences, or none, an exploration has to see."""

import json
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from moscope import buildproto
from moscope.errors import BuildFailed, UserError
from moscope.protocol import verify

Moscope = Callable[..., subprocess.CompletedProcess[str]]
Changes = tuple[tuple[str, str], ...]

NULL = (("tbe.Acks := tbe.Acks - 1;", "unset_tbe(); tbe.Acks := tbe.Acks - 1;"),)
LARGE = (("tbe.Acks := out_msg.Destination.count();", "tbe.Acks := out_msg.Destination.count() + 199;"),
         ("tbe.Acks == 1", "tbe.Acks - 199 == 1"))
#: A store to a shared line keeps its copy when it loses it, and writes into it. The copy is a field of a field.
STALE_WITHIN = (
    ('structure(Entry, desc="A cache line"', 'structure(Held, desc="the bytes") {\n DataBlock Blk, desc="Data";\n }\n'
     'structure(Entry, desc="A cache line"'),
    ('State CacheState,  desc="State";\n    DataBlock DataBlk,', 'State CacheState,  desc="State";\n    Held held,'),
    ("cache_entry.DataBlk", "cache_entry.held.Blk"), ("getCacheEntry(addr).DataBlk", "getCacheEntry(addr).held.Blk"),
    ("transition({IM, SM}, Data, M) {", "transition(SM, Data, M) { sm_storeMissDone; um_sendUnblockM; pr_popResponse; wk_wake; }\n"
     "transition(IM, Data, M) {"),
    ("transition(SM, Inv, IM) {", "transition(SM, Inv) {"),
)
#: A message to a set that is empty, which the engine does not send, and an assertion in a method of a message.
HARMLESS = (("tbe.Acks := out_msg.Destination.count();\n      }", "tbe.Acks := out_msg.Destination.count();\n      }\n"
             "enqueue(forwardNetwork_out, RequestMsg, 1) { out_msg.addr := address; out_msg.Type := CoherenceRequestType:Inv;\n"
             "out_msg.MessageSize := MessageSizeType:Invalidate_Control; }"),
            ('structure(ResponseMsg, desc="Answers", interface="Message") {',
             'structure(ResponseMsg, desc="Answers", interface="Message") {\n'
             "bool isData() { assert(Type != CoherenceResponseType:Data || Type != CoherenceResponseType:InvAck);\n"
             "if (Type == CoherenceResponseType:Data) { return true; } else if (Type != CoherenceResponseType:Data) { return false; } }"),
            ("if (in_msg.Type == CoherenceResponseType:InvAck) {", "if (in_msg.isData() == false && "
             "in_msg.Type == CoherenceResponseType:InvAck) {"))


def changed(folder: Path, changes: Changes) -> str:
    """A copy of MSI with all occurrences of each text replaced; the path of its .slicc file."""
    source = buildproto.known_protocols()["MSI"]
    files = {path: path.read_text(encoding="utf-8") for path in source.parent.glob("MSI*")}
    for old, new in changes:
        assert any(old in text for text in files.values()), old
        files = {path: text.replace(old, new) for path, text in files.items()}
    for path, text in files.items():
        (folder / path.name).write_text(text, encoding="utf-8")
    return str(folder / source.name)


@pytest.mark.parametrize("changes, said", [(NULL, "MSI-dir.sm:"), (STALE_WITHIN, "stale data: ")], ids=["null", "stale within"])
def test_a_fault_is_found(moscope: Moscope, tmp_path: Path, changes: Changes, said: str) -> None:
    got = moscope("protocol", "verify", changed(tmp_path, changes), "--json", "--shrink", "0", "--no-evict")
    assert got.returncode == 1, got.stderr
    violation = json.loads(got.stdout)["violation"]
    assert said in violation
    if changes is NULL:
        assert re.fullmatch(r"tbe is null: .* \(machine Directory-0, action \w+, MSI-dir\.sm:\d+\)", violation)


def test_an_empty_destination_and_an_assertion_in_a_method_are_no_fault(moscope: Moscope, tmp_path: Path) -> None:
    got = moscope("protocol", "verify", changed(tmp_path, HARMLESS), "--json", "--shrink", "0", "--no-evict")
    assert got.returncode == 0 and json.loads(got.stdout)["complete"], got.stderr


#: A directory without TBEs: the states of a line are in its entry. Patterns, and what takes their place.
WITHOUT_TBES = ((r"  structure\(TBE, .*?  TBETable TBEs, [^;]*;\n", ""), (r"  void (un)?set_tbe\([^)]*\);\n", ""),
                (r" *(TBE tbe := |TBEs\.|(un)?set_tbe\()[^;]*;\n", ""), (r"if \(is_valid\(tbe\)\) \{[^}]*\} else if", "if"),
                (r"if \(is_valid\(tbe\)\) \{[^}]*\}\n", ""), (r"TBE tbe, ", ""), (r", (tbe|TBEs\[[^]]*\])\)", ")"))


def test_a_machine_may_have_no_tbes(moscope: Moscope, tmp_path: Path) -> None:
    folder = shutil.copytree(Path(__file__).parent / "protocols", tmp_path / "protocols")
    home = folder / "Handover-dir.sm"
    text = home.read_text(encoding="utf-8")
    for pattern, new in WITHOUT_TBES:
        text = re.sub(pattern, new, text, flags=re.DOTALL)
    assert "tbe" not in text.lower()
    home.write_text(text, encoding="utf-8")
    got = moscope("protocol", "verify", str(folder / "Handover.slicc"), "--json", "--shrink", "0", "--no-evict")
    assert got.returncode == 0 and json.loads(got.stdout)["complete"], got.stderr


def test_a_number_that_a_state_cannot_hold_is_refused_at_its_line(moscope: Moscope, tmp_path: Path) -> None:
    got = moscope("protocol", "verify", changed(tmp_path, LARGE), "--shrink", "0", "--no-evict")
    assert got.returncode == 2 and "MSI-dir.sm:" in got.stderr and ": 200: expected" in got.stderr, got.stderr


def test_a_killed_compiler_is_not_reported_as_a_feature_that_models_lack(monkeypatch: pytest.MonkeyPatch) -> None:
    def killed(command: list[str]) -> None:
        raise BuildFailed(f"{command[-1]}: g++: fatal error: Killed signal terminated program cc1plus")

    monkeypatch.setattr(buildproto, "run_tool", killed)
    with pytest.raises(BuildFailed, match="Killed"):
        verify.build("MSI", "opteron48", [], verify.Bounds(pending=7), lambda _: None)


def test_an_exploration_that_the_host_kills_is_no_bug_of_the_simulator(tmp_path: Path) -> None:
    program = tmp_path / "program"
    program.write_text("#!/bin/sh\nkill -KILL $$\n", encoding="utf-8")
    program.chmod(0o755)
    with pytest.raises(UserError, match="--memory: 1 MiB: "):
        verify.explore(program, 1 << 20, 1.0, 1, quiet=True)


def test_an_exploration_to_which_the_host_refuses_memory_ends_at_its_limit_of_memory(tmp_path: Path) -> None:
    program = verify.build("MSI", "opteron48", [], verify.Bounds(caches=3, lines=2), lambda _: None)
    limited = tmp_path / "limited"
    limited.write_text(f'#!/bin/sh\nulimit -v 65536\nexec {program} "$@"\n', encoding="utf-8")
    limited.chmod(0o755)
    answer = verify.explore(limited, 1 << 36, 600.0, 1, quiet=True)
    assert not answer["complete"] and answer["limit"] == "memory" and answer["states"] > 10_000 and "violation" not in answer
