# SPDX-License-Identifier: BSD-3-Clause
"""Whatever a protocol does that the compiler accepts, `protocol check` ends with a verdict: transitions of MSI are damaged at random
(actions lost, repeated, moved or added, next states and bodies exchanged, transitions left out). No run ends in a crash, in a hang or as
a bug of the simulator. Under asan (`MOSCOPE_VARIANT=asan`) none reads what it may not. The seeds are fixed; `--long` has 60."""

import random
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from moscope import buildproto
from slicc.compile import compile_protocol

Moscope = Callable[..., subprocess.CompletedProcess[str]]
TRANSITION = re.compile(r"^  transition\((?P<head>[^)]*)\) \{\n?(?P<body>[^}]*)\}\n", re.MULTILINE)
ACTION = re.compile(r"^  action\((\w+),", re.MULTILINE)
STATES = re.compile(r"^    (\w+), AccessPermission:", re.MULTILINE)


def damaged(rng: random.Random, text: str) -> str:
    """One change of a transition of a machine."""
    places = list(TRANSITION.finditer(text))
    one, other = rng.sample(places, 2)
    parts = [part.strip() for part in one["body"].split(";") if part.strip()]
    head = one["head"]
    kind = rng.choice(["lost", "repeated", "moved", "added", "next", "body", "without"])
    if kind == "without":
        return text[:one.start()] + text[one.end():]
    if kind == "body":
        parts = [part.strip() for part in other["body"].split(";") if part.strip()]
    elif kind == "next":
        words = re.split(r",\s*(?![^{]*\})", head)
        head = ", ".join([*words[:2], rng.choice(STATES.findall(text))])
    elif kind == "added" or not parts:
        parts.insert(rng.randrange(len(parts) + 1), rng.choice(ACTION.findall(text)))
    elif kind == "moved":
        parts.insert(rng.randrange(len(parts)), parts.pop(rng.randrange(len(parts))))
    elif kind == "repeated":
        parts.insert(rng.randrange(len(parts) + 1), rng.choice(parts))
    else:
        parts.remove(rng.choice(parts))
    body = "".join(f"    {part};\n" for part in parts)
    return f"{text[:one.start()]}  transition({head}) {{\n{body}  }}\n{text[one.end():]}"


def accepted(folder: Path, seed: int) -> Path:
    """A damaged copy of MSI that the compiler accepts: the first of those that the seed gives."""
    rng = random.Random(seed)
    source = buildproto.known_protocols()["MSI"]
    while True:
        for path in source.parent.glob("MSI*"):
            shutil.copy(path, folder)
        for _ in range(rng.randint(1, 3)):
            file = folder / rng.choice(["MSI-cache.sm", "MSI-dir.sm"])
            file.write_text(damaged(rng, file.read_text(encoding="utf-8")), encoding="utf-8")
        program, _ = compile_protocol(str(folder / source.name))
        if program is not None:
            return folder / source.name


@pytest.mark.parametrize("seed", [1, *(pytest.param(seed, marks=pytest.mark.long) for seed in range(2, 61))])
def test_a_damaged_protocol_gets_a_verdict(moscope: Moscope, tmp_path: Path, seed: int) -> None:
    path = accepted(tmp_path, seed)
    got = moscope("protocol", "check", str(path), "--cores", "4", "--ops", "20000", "--quiet", "--shrink", "0", timeout=600)
    print(seed, got.returncode, got.stderr[-300:])
    assert got.returncode in (0, 1, 3), got.stderr
    assert "simulator bug" not in got.stderr and "Traceback" not in got.stderr
    if got.returncode < 3:  # what it has tested: an exit for another reason is no verdict
        assert " loads checked" in got.stdout and "violation" in got.stdout
    else:
        assert "moscope: protocol error: " in got.stderr
