# SPDX-License-Identifier: BSD-3-Clause
"""Requests that never finish are found, whichever core of a controller made them."""

import json
from pathlib import Path

import pytest

from moscope import buildproto, config
from moscope.errors import ProtocolError
from moscope.experiment import Subject
from moscope.traces.document import run_script
from moscope.traces.script import parse

HANDOVER = Path(__file__).parent / "protocols" / "Handover.slicc"


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
