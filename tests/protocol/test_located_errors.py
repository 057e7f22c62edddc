# SPDX-License-Identifier: BSD-3-Clause
"""What a protocol from outside the project does wrong at run time ends as a protocol error that names machine, action and line,
not as a crash: copies of MSI, each with one mistake."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from moscope import buildproto
from moscope.errors import ProtocolError, UserError
from moscope.protocol import check as protocol_check

ACTION = "gs_sendGetS"  # runs when the core's request is at work
MISTAKES = {  # what is put at the beginning of the action's body, and the error
    "null": ("unset_cache_entry(); cache_entry.DataBlk.clear();", "cache_entry is null"),
    "other port": ("stall_and_wait(responseNetwork_in, address);", "stall_and_wait: .* has no message that is due"),
    "no machine": ("NetDest d; d.add(createMachineID(MachineType:L1Cache, intToID(99)));",
                   "destination L1Cache-99: no such machine: expected a number from 0 to "),
    "no machine type": ("NetDest d; d.add(createMachineID(MachineType:L2Cache, intToID(0)));",
                        "destination L2Cache-0: no such machine: expected a MachineType of the protocol"),
    "recursion": ("deeper(1);", r"function deeper: calls itself without end"),
    "division": ("int zero := 0; assert(7 / zero > 0);", "division by 0"),
    "shift": ("int many := 32; assert((1 << many) == 0);", "shift by 32 bits: expected 0 to 31"),
    "bits of an address": ("assert(bitSelect(address, 6, 5) == address);",
                           "bitSelect: bits 6 to 5: expected the first and the last bit to be from 0 to 63"),
    "beyond the line": ("DataBlock some; DataBlock other; some.copyPartial(other, getOffset(address + 60), issue_latency + 3);",
                        "bytes of a line: 5 from byte 60 on: expected bytes 0 to 63"),
    "byte beyond the line": ("WriteMask some; some.fillMask(); assert(some.test(getOffset(address) + 64));",
                             "bytes of a line: 1 from byte 64 on: expected bytes 0 to 63"),
    "size of a line": ("WriteMask some; some.setBlockSize(some.getBlockSize() * 2);",
                       r"WriteMask.setBlockSize: 128: expected 64, the bytes of a line"),
    "largest quotient": ("int low := 0 - 2147483647; low := low - 1; int minus := 0 - 1; assert(low / minus > 0);",
                         "division of -2147483648 by -1: the result is too large for its type"),
    "no receiver, later": ("enqueue(requestNetwork_out, RequestMsg, 9) { out_msg.addr := address; out_msg.Requestor := machineID; "
                           "out_msg.Destination.broadcast(MachineType:L1Cache); out_msg.MessageSize := MessageSizeType:Request_Control; }",
                           r"message of line 0x\w+ from L1Cache-\d+ to L1Cache-0, which has no buffer from virtual network 0"),
    "no receiver": ("enqueue(requestNetwork_out, RequestMsg, 1) { out_msg.addr := address; out_msg.Requestor := machineID; "
                    "out_msg.Destination.add(machineID); out_msg.MessageSize := MessageSizeType:Request_Control; }",
                    r"message of line 0x\w+ from (L1Cache-\d+) to \1, which has no buffer from virtual network 0"),
}


def copy(tmp_path: Path, action: str, mistake: str) -> tuple[Path, int]:
    """A protocol of another path with a mistake in an action of the cache, and the mistake's line."""
    for path in buildproto.known_protocols()["MSI"].parent.glob("MSI*"):
        shutil.copy(path, tmp_path)
    file = tmp_path / "MSI-cache.sm"
    lines = file.read_text(encoding="utf-8").splitlines(keepends=True)
    at = next(i for i, line in enumerate(lines) if line.lstrip().startswith(f"action({action},"))
    while not lines[at].rstrip().endswith("{"):
        at += 1
    lines.insert(at + 1, f"    {mistake}\n")
    with (tmp_path / "MSI-msg.sm").open("a", encoding="utf-8") as messages:
        messages.write("int deeper(int a) {\n  if (a < 0) {\n    return 0;\n  }\n  return deeper(a + 1) + 1;\n}\n")
    file.write_text("".join(lines), encoding="utf-8")
    return tmp_path / "MSI.slicc", at + 2


@pytest.mark.long
@pytest.mark.parametrize("kind", MISTAKES)
def test_a_mistake_is_an_error_with_machine_action_and_line(tmp_path: Path, kind: str) -> None:
    mistake, error = MISTAKES[kind]
    protocol, line = copy(tmp_path, ACTION, mistake)
    subject = protocol_check.prepare(str(protocol), "small")
    assert not subject.protocol.own
    with pytest.raises(ProtocolError, match=error) as found:
        protocol_check.random_test(subject.leave_out(subject.default_left_out()), 1000, 1)
    assert "machine L1Cache-" in str(found.value) and f"action {ACTION}, MSI-cache.sm:{line}" in str(found.value)


@pytest.mark.long
def test_no_progress_of_a_protocol_that_polls_is_reported_as_polling(tmp_path: Path) -> None:
    protocol, _ = copy(tmp_path, "pm_popMandatory", "")
    file = tmp_path / "MSI-cache.sm"
    text = file.read_text(encoding="utf-8")
    again = ('  Tick cyclesToTicks(Cycles c);\n  action(again, "again", desc="Try again") {\n'
             '    mandatoryQueue_in.recycle(clockEdge(), cyclesToTicks(recycle_latency));\n  }\n\n')
    load = "  transition(I, Load, IS) {\n    ac_allocate;\n    gs_sendGetS;\n    pm_popMandatory;\n"
    assert text.count(load) == 1
    file.write_text(text.replace(load, again + "  transition(I, Load, I) {\n    again;\n"), encoding="utf-8")
    subject = protocol_check.prepare(str(protocol), "small")
    with pytest.raises(ProtocolError, match=r"no progress: .*; the protocol polls: meanwhile L1Cache-\d+ and \d more took "
                       r"\d+ times I --Load-->"):
        protocol_check.random_test(subject.leave_out(subject.default_left_out()), 1000, 1)


@pytest.mark.long
def test_functions_of_messages_and_of_no_machine_may_end_in_an_error(tmp_path: Path) -> None:
    protocol, _ = copy(tmp_path, ACTION, "")
    file = tmp_path / "MSI-msg.sm"
    text = file.read_text(encoding="utf-8")
    body = "    return testAndWrite(addr, DataBlk, pkt);\n"
    assert text.count(body) == 2
    text = text.replace(body, '    error("MSI is never written to");\n')
    file.write_text(text + 'int never() {\n  error("never");\n}\n', encoding="utf-8")
    subject = protocol_check.prepare(str(protocol), "small", cores=2)
    assert not protocol_check.random_test(subject.leave_out(subject.default_left_out()), 1000, 1)["violations"]


HEADER = "namespace moscope::ruby {{\ninline void Sequencer_{} {{ {} }}\n}}\n"
HEADERS = {  # what NAME.hh has, and where the error is
    "mistake": (HEADER.format("note(Sequencer &s, Addr)", "s.nonsense();"), "MSI.hh:2: error: .*nonsense"),
    "arguments": (HEADER.format("note(int, int, int)", ""), r"MSI-cache.sm:\d+: error: .*Sequencer"),
    "unused": (HEADER.format("note(Sequencer &, Addr a)", "int unused; throw std::runtime_error(\"mine\");"), ""),
}


@pytest.mark.long
@pytest.mark.parametrize("kind", HEADERS)
def test_a_mistake_in_the_protocols_own_header_is_an_error_of_the_user_at_its_line(tmp_path: Path, kind: str) -> None:
    protocol, _ = copy(tmp_path, ACTION, "sequencer.note(address);")
    text, error = HEADERS[kind]
    (tmp_path / "MSI.prelude.sm").write_text('structure(Sequencer, external="yes") { void note(Addr); }\n', encoding="utf-8")
    (tmp_path / "MSI.hh").write_text(text, encoding="utf-8")
    subject = protocol_check.prepare(str(protocol), "small")
    if error:
        with pytest.raises(UserError, match=error) as found:
            subject.protocol.checking()
        assert "build/" not in str(found.value)
    else:  # a warning of g++ is none of a user's; an exception is one at run time
        assert subject.protocol.checking().exists()
        with pytest.raises(ProtocolError, match=rf"exception in C\+\+: mine \(machine L1Cache-\d+, action {ACTION}, MSI-cache.sm:\d+\)"):
            protocol_check.random_test(subject.leave_out(subject.default_left_out()), 1000, 1)


def test_a_protocols_name_may_have_dashes_and_differ_from_its_file(tmp_path: Path, moscope: Callable[..., Any]) -> None:
    protocol, _ = copy(tmp_path, ACTION, "")
    text = protocol.read_text(encoding="utf-8")
    protocol.write_text(text.replace('protocol "MSI";', 'protocol "My-MSI";'), encoding="utf-8")
    got = moscope("protocol", "check", str(protocol), "--cores", "2", "--ops", "1000", "--shrink", "0")
    assert got.returncode == 0 and "no violation" in got.stdout, got.stderr
    got = moscope("protocol", "verify", str(protocol), "--shrink", "0")
    assert got.returncode == 0 and "verified" in got.stdout, got.stderr
