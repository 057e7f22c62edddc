# SPDX-License-Identifier: BSD-3-Clause
"""What a protocol from outside the project may do, although the project's own do not, and mistakes that end as protocol errors at their
lines: one copy of MSI, in which bits 6 to 9 of a line's address choose what its first load does."""

import shutil
from pathlib import Path

import pytest

from moscope import buildproto
from moscope.cli import Shared
from moscope.config import load_machine
from moscope.errors import ProtocolError
from moscope.experiment import Subject, prepare
from moscope.traces.document import run_script
from moscope.traces.script import parse

NOTE = "{ out_msg.addr := address; out_msg.Sender := machineID; out_msg.MessageSize := MessageSizeType:Control; }"
MISTAKES = {  # by number: a statement of the action that a load's miss runs, and the error that it ends in
    1: ("assert(mod(7, paid) == 0);", "division by 0"),
    2: (f"enqueue(notes_out, ResponseMsg, issue_latency - 20) {NOTE}", "enqueue: latency -18: expected 0 or more cycles"),
    3: ("Set s; s.add(intToID(1000000 + paid)); assert(s.count() == 1);", "Set: element 1000000: expected 0 to 255"),
    0: ("enqueue(requestNetwork_out, RequestMsg, 1) { out_msg.addr := address; out_msg.Destination.add(machineID); }",
         "enqueue: the message into .*requestFromCache has no MessageSize: expected an assignment of one"),
    10: ("cacheMemory.allocate(address, new Entry);", "allocate: the line is present: expected isTagPresent"),
    11: ("NetDest d; assert(d.isElement(unset) == false);", "NetDest: the MachineID was never set"),
    12: ("NetDest d; d.add(mapAddressToRange(address, MachineType:L2Cache, 6, 2));", "destination L2Cache-.: no such machine"),
    13: ("dequeueMemRespQueue();", "dequeueMemRespQueue: the machine has no queue of answers from memory"),
    4: ("Addr next := timer.nextAddress(); assert(next == address);", "TimerTable.nextAddress: no timer is set: expected isReady"),
}
OF_ANOTHER_HOME = 5
PAYS, WAITS, OF_NO_MACHINE, ASKS, EMPTY_QUEUE = 6, 7, 14, 15, 8
CHANGES = [  # a part of MSI-cache.sm, and what stands in its place
    # a field of an entry with a name of the runtime's
    ('    State CacheState,  desc="State";', '    State CacheState,  desc="State";\n    int slot, default="5", desc="mine";\n'
                                             '    DataBlock DataBlock, desc="named as its type";'),
    # names of the runtime's and of the prelude's, and what g++ warns of
    ("  // Everything that is not a plain read", "  bool present(Addr head) {\n    return head == head;\n  }\n\n"
     "  int getOffset(State state) {\n    return 7;\n  }\n\n  // Everything that is not a plain read"),
    ("      MessageBuffer * mandatoryQueue;", "      MessageBuffer * notes;\n      MessageBuffer * relayed;\n"
                                                     "      MessageBuffer * mandatoryQueue;"),
    # an in_port that sends a message on by itself
    ("  in_port(responseNetwork_in, ResponseMsg, responseToCache,",
     "  out_port(relay_out, ResponseMsg, relayed);\n  in_port(relay_in, ResponseMsg, responseToCache) {\n"
     "    if (relay_in.isReady(clockEdge())) {\n      peek(relay_in, ResponseMsg) {\n"
     "        enqueue(relay_out, ResponseMsg, 1) {\n          out_msg := in_msg;\n        }\n      }\n"
     "      relay_in.dequeue(clockEdge());\n    }\n  }\n\n  in_port(responseNetwork_in, ResponseMsg, relayed,"),
    ("  Tick clockEdge();\n", "  Tick clockEdge();\n  Cycles curCycle();\n  TimerTable timer;\n"
                             '  bool owed, default="false";\n  Addr owedFor;\n  int paid, default="0";\n'
                             "  bool done;\n  MachineID unset;\n  int asked, default=\"0\";\n  int asks, default=\"0\";\n"),
    # an in_port that needs no message
    ("  in_port(mandatoryQueue_in,", "  out_port(notes_out, ResponseMsg, notes);\n  out_port(asks_out, RequestMsg, notes);\n"
                                     "  in_port(asks_in, RequestMsg, notes) {\n    if (asks_in.isReady(clockEdge())) {\n"
                                     "      peek(asks_in, RequestMsg) {\n        asked := asked + 1;\n      }\n"
                                     "      asks_in.dequeue(clockEdge());\n    }\n  }\n\n"
                                     "  in_port(notes_in, ResponseMsg, notes) {\n"
                                     "    if (owed) {\n      trigger(Event:Pay, owedFor, getCacheEntry(owedFor), TBEs[owedFor]);\n"
                                     "    }\n  }\n\n"
                                     "  in_port(mandatoryQueue_in,"),
    ("    if (forwardNetwork_in.isReady", "    assert(done == false);\n    if (forwardNetwork_in.isReady"),
    # a stall that ends with time
    ("        if (is_valid(cache_entry) || cacheMemory.cacheAvail",
     f"        if (bitSelect(in_msg.LineAddress, 6, 9) == {WAITS} && curCycle() < intToCycles(5000)) {{\n"
     "          trigger(Event:TooEarly, in_msg.LineAddress, cache_entry, TBEs[in_msg.LineAddress]);\n"
     "        } else if (is_valid(cache_entry) || cacheMemory.cacheAvail"),
    ('    PutAck,      desc="The directory has taken the PutM";',
     '    PutAck,      desc="The directory has taken the PutM";\n    Pay, desc="Pay"; TooEarly, desc="Wait";'),
    ("  // Hits\n", '  action(pa_pay, "pa", desc="Pay") {\n    owed := false;\n    paid := paid + 1;\n  }\n\n'
                    '  action(z_stall, "zz", desc="Wait") {\n  }\n\n'
                    # a second message is taken after the cause, and one is sent, before the load is done
                    '  action(nn_note, "nn", desc="Take the note and make another") {\n    if (notes_in.isReady(clockEdge())) {\n'
                    f"      notes_in.dequeue(clockEdge());\n      enqueue(notes_out, ResponseMsg, 100) {NOTE}\n    }}\n  }}\n\n"
                    "  transition({I, S, M, IS, IM, SM, MI, II}, Pay) {\n    pa_pay;\n  }\n\n"
                    "  transition({I, S, M, IS, IM, SM, MI, II}, TooEarly) {\n    z_stall;\n  }\n\n"),
    ("    wd_writeData;\n    lm_loadMissDone;\n    us_sendUnblockS;\n    pr_popResponse;\n",
     "    wd_writeData;\n    us_sendUnblockS;\n    pr_popResponse;\n    nn_note;\n    lh_loadHit;\n"),
]


def with_statements(file: Path, action: str, statements: list[str]) -> None:
    """Puts lines at the beginning of an action's body."""
    lines = file.read_text(encoding="utf-8").splitlines(keepends=True)
    at = next(i for i, line in enumerate(lines) if line.lstrip().startswith(f"action({action},"))
    while not lines[at].rstrip().endswith("{"):
        at += 1
    lines[at + 1:at + 1] = [f"    {statement}\n" for statement in statements]
    file.write_text("".join(lines), encoding="utf-8")


@pytest.fixture(name="subject", scope="module")
def _subject(tmp_path_factory: pytest.TempPathFactory) -> Subject:
    folder = tmp_path_factory.mktemp("unusual")
    for path in buildproto.known_protocols()["MSI"].parent.glob("MSI*"):
        shutil.copy(path, folder)
    cache, home = folder / "MSI-cache.sm", folder / "MSI-dir.sm"
    text = cache.read_text(encoding="utf-8")
    for old, new in CHANGES:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    cache.write_text(text, encoding="utf-8")
    with_statements(cache, "gs_sendGetS", [
        "int kind := addressToInt(bitSelect(address, 6, 9));",
        "bool send := present(address); assert(send && getOffset(State:I) == 7 && getOffset(address) == 0);",
        *(f"if (kind == {number}) {{ {statement} }}" for number, (statement, _) in MISTAKES.items()),
        f"if (kind == {OF_NO_MACHINE}) {{ NetDest d; d.add(machineID); MachineID other := createMachineID(MachineType:L2Cache, "
        "intToID(0)); assert(d.isElement(other) == false); d.remove(other); assert(d.count() == 1); }",
        f"if (kind == {ASKS}) {{ assert(asked == asks); asks := asks + 1; enqueue(asks_out, RequestMsg, 1) {{ out_msg.addr := address; "
        "out_msg.Requestor := machineID; out_msg.MessageSize := MessageSizeType:Control; } }",
        f"if (kind == {PAYS}) {{ owed := true; owedFor := address; enqueue(notes_out, ResponseMsg, 1) {NOTE} }}"])
    far = " + ".join(["address"] + ["intToAddress(2147483647)"] * 9)
    with_statements(home, "rm_readMemory", [f"if (bitSelect(address, 6, 9) == {OF_ANOTHER_HOME}) {{",
                                            f"  directory.allocate({far}, new Entry);", "}",
                                            f"if (bitSelect(address, 6, 9) == {EMPTY_QUEUE}) {{ dequeueMemRespQueue(); }}"])
    sets = [f"protocol={folder / 'MSI.slicc'}"]
    return prepare(Shared(machine="small", sets=sets, seed=1, quiet=True), load_machine("small", sets), checking=True)


def run(subject: Subject, *kinds: int) -> dict[str, object]:
    script = "; ".join(f"c0 ld {0x10000 + 64 * kind}" for kind in kinds)
    return run_script(subject, parse(script, subject.machine), script)


@pytest.mark.long
@pytest.mark.parametrize("number", MISTAKES)
def test_a_mistake_is_an_error_at_its_line(subject: Subject, number: int) -> None:
    with pytest.raises(ProtocolError, match=rf"{MISTAKES[number][1]}.*action gs_sendGetS, MSI-cache.sm:\d+"):
        run(subject, number)


@pytest.mark.long
def test_a_directory_entry_for_a_line_of_another_home_is_an_error(subject: Subject) -> None:
    with pytest.raises(ProtocolError, match=r"DirectoryMemory: this node is not the home.*action rm_readMemory, MSI-dir.sm:\d+"):
        run(subject, OF_ANOTHER_HOME)


@pytest.mark.long
def test_a_dequeue_from_the_empty_queue_of_memory_answers_is_an_error(subject: Subject) -> None:
    with pytest.raises(ProtocolError, match=r"dequeue: .* has no message that is due.*action rm_readMemory, MSI-dir.sm:\d+"):
        run(subject, EMPTY_QUEUE)


@pytest.mark.long
def test_no_set_has_a_machine_of_a_type_that_the_protocol_lacks(subject: Subject) -> None:
    """Otherwise it would have the number of the protocol's first machine, which here is the running one."""
    (access,) = run(subject, OF_NO_MACHINE)["accesses"]  # type: ignore[misc]
    assert access["latency_fs"]


@pytest.mark.long
def test_an_in_port_may_start_a_transition_without_a_message(subject: Subject) -> None:
    found = run(subject, PAYS)
    assert [t for t in found["transitions"] if "Pay" in t.values()]  # type: ignore[attr-defined]


@pytest.mark.long
def test_in_ports_may_take_different_types_from_one_buffer(subject: Subject) -> None:
    """The note in front is left by the in_port of the other type."""
    found = run(subject, ASKS, PAYS, ASKS + 16)["accesses"]
    assert all(access["latency_fs"] for access in found)  # type: ignore[attr-defined]


@pytest.mark.long
def test_a_message_sent_after_two_were_taken_continues_the_history_of_the_first(subject: Subject) -> None:
    first, second, third = run(subject, 9, PAYS, 25)["accesses"]  # type: ignore[misc]
    assert first["latency_fs"] and second["latency_fs"] and third["latency_fs"]


@pytest.mark.long
def test_a_message_that_an_in_port_sends_on_continues_the_history_of_the_first(subject: Subject) -> None:
    found = run(subject, OF_NO_MACHINE)
    (access,) = found["accesses"]  # type: ignore[misc]
    sent = {m["id"]: m["cause"] for m in found["messages"] if m["structure"] == "ResponseMsg"}  # type: ignore[attr-defined]
    assert any(cause in sent for cause in sent.values()) and all(cause != number for number, cause in sent.items())
    times = {segment["name"]: segment["fs"] for segment in access["segments"]}
    assert sum(times.values()) == access["latency_fs"] and times["dram"] > 0


@pytest.mark.long
def test_a_stall_may_end_with_time(subject: Subject) -> None:
    (access,) = run(subject, WAITS)["accesses"]  # type: ignore[misc]
    assert access["latency_cycles"] > 4900
