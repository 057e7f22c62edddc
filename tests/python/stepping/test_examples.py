# SPDX-License-Identifier: BSD-3-Clause
"""Each example shows what its text says: every claim is measured in its trace, and every quantity in the text is a claim."""

import os
import re
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from moscope.errors import UserError
from moscope.stepping import examples
from moscope.stepping.examples import claims
from moscope.stepping.subject import prepared
from moscope.traces.document import run_script

# What a text says of a number, and the claims that may say it.
UNITS = {"cycles": ("cycles", "span"), "link crossings": ("hops",), "probes": ("probes", "count"), "messages": ("messages",),
         "receivers": ("count",), "acknowledgements": ("count",), "acknowledgement": ("count",), "invalidation": ("count",)}
QUANTITY = re.compile(r"(\d+)\s+(?:\w+\s+)?(" + "|".join(sorted(UNITS, key=len, reverse=True)) + r")\b")
WANTED = {"msi-life", "moesi-life", "false-sharing", "true-sharing", "upgrade", "filter-eviction", "directed-and-broadcast",
          "msi-race-write-back", "msi-race-upgrade", "msi-race-silent-drop", "ticket-lock", "mcs-lock", "ping-pong"}


@cache
def trace(name: str) -> dict[str, Any]:
    spec = examples.load(name).spec
    subject, steps = prepared(spec)
    return run_script(subject, steps, spec.script, spec.checked)


def test_every_topic_of_the_course_has_an_example() -> None:
    assert set(examples.names()) >= WANTED


@pytest.mark.parametrize("name", examples.names())
def test_an_example_shows_what_its_text_claims(name: str) -> None:
    document = trace(name)
    wrong = [f"{claim}: measured {claims.measured(document, claim)}" for step in examples.load(name).steps
             for claim in step.get("claims", []) if claims.measured(document, claim) != claim[claims.key_of(claim)]]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("name", examples.names())
def test_each_quantity_in_the_text_of_an_example_is_a_claim(name: str) -> None:
    for step in examples.load(name).steps:
        claimed = [(claims.key_of(c), c[claims.key_of(c)]) for c in step.get("claims", [])]
        for value, unit in QUANTITY.findall(step["text"]):
            assert any((key, int(value)) in claimed for key in UNITS[unit]), f"{value} {unit} is not claimed: {step['text']}"


@pytest.mark.parametrize("name", examples.names())
def test_each_text_stands_at_the_end_of_its_access(name: str) -> None:
    document = trace(name)
    begin = min(a["issued"] for a in document["accesses"])
    period = Fraction(*document["clock"]["core_period_fs"])
    steps = examples.load(name).steps
    assert steps
    for step in steps:
        done = document["accesses"][step["access"] - 1]["done"]
        assert step["at"] == round(float((done - begin) / period), 1)


@pytest.mark.parametrize("name", examples.names())
def test_the_parts_of_a_text_follow_each_other_in_time(name: str) -> None:
    times = [step["at"] for step in examples.load(name).steps if "at" in step]
    assert times == sorted(times)


def test_the_check_finds_a_wrong_number_in_a_text() -> None:
    assert QUANTITY.findall("Core 6 waits 186 cycles: 2 link crossings, 10 ProbeInv probes.") == [
        ("186", "cycles"), ("2", "link crossings"), ("10", "probes")]


def test_a_script_file_may_begin_with_a_byte_order_mark(tmp_path: Path) -> None:
    (tmp_path / "s.toml").write_bytes(b'\xef\xbb\xbftitle = "x"\nscript = "c0 ld A@n0"\n')
    assert examples.read(tmp_path / "s.toml").title == "x"


@pytest.mark.parametrize("content, says", [
    (b"\xff\xfe", "is not a text file: expected a script file in TOML"),
    (b'title = "t"', "no script: expected the keys title and script"),
    (b'titel = "t"', 'no key called "titel": expected a known name, such as title'),
    (b'title = "t"\nscript = 3', "script: 3: expected a string"),
    (b'title = "t"\nscript = "c0 ld A@n0"\nset = "chips=1"', "set: chips=1: expected a list of strings"),
    (b'title = "t"\nscript = "c0 ld A@n0"\nset = [1]', "set: [1]: expected a list of strings"),
    (b'title = "t"\nscript = "c0 ld A@n0"\ncores = "x"', "cores: x: expected a whole number from 0"),
    (b'title = "t"\nscript = "c0 ld A@n0"\nseed = -1', "seed: -1: expected a whole number from 0"),
    (b'title = "t"\nscript = "c0 ld A@n0"\nsteps = [1]', "steps: [1]: expected tables"),
])
def test_a_damaged_script_file_is_a_user_error(tmp_path: Path, content: bytes, says: str) -> None:
    (tmp_path / "a.toml").write_bytes(content)
    with pytest.raises(UserError, match=re.escape(f"a.toml: {says}")):
        examples.read(tmp_path / "a.toml")


def test_a_device_or_a_pipe_is_no_script_file(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.toml")
    (tmp_path / "zero.toml").symlink_to("/dev/zero")
    for name, kind in (("zero", "device"), ("pipe", "pipe")):
        with pytest.raises(UserError, match=f"{name}.toml: is a {kind}: expected a script file"):
            examples.read(tmp_path / f"{name}.toml")
