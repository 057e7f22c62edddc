# SPDX-License-Identifier: BSD-3-Clause
"""Truncated, mutated and random machine files, options and edges: a machine or a clean error, every time."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from moscope.config import load_machine
from moscope.config.load import configs_dir
from moscope.errors import UserError

SOURCE = (configs_dir() / "opteron48.py").read_bytes()
ROUNDS = 60


def attempt(path: Path, data: bytes, *sets: str) -> str | None:
    path.write_bytes(data)
    try:
        load_machine(str(path), sets)
    except UserError as error:
        text = str(error)
        assert "\n" not in text
        assert "Traceback" not in text
        assert text.count(": ") >= 2, text
        return text
    return None


def test_a_truncated_file_is_an_error(tmp_path: Path) -> None:
    rnd = random.Random(1)
    whole = len(SOURCE.rstrip())
    for _ in range(ROUNDS):
        assert attempt(tmp_path / "cut.py", SOURCE[: rnd.randrange(whole)]) is not None


def test_a_mutated_file_is_a_machine_or_an_error(tmp_path: Path) -> None:
    rnd = random.Random(2)
    refused = 0
    for _ in range(ROUNDS):
        data = bytearray(SOURCE)
        for _ in range(rnd.randint(1, 8)):
            at = rnd.randrange(len(data))
            match rnd.randrange(3):
                case 0:
                    data[at] = rnd.randrange(256)
                case 1:
                    del data[at : at + rnd.randint(1, 20)]
                case 2:
                    data[at:at] = bytes(rnd.choices(b"0123456789()[],'\"=.KMGiBx \n", k=rnd.randint(1, 4)))
        refused += attempt(tmp_path / "changed.py", bytes(data)) is not None
    assert refused > ROUNDS // 4


def test_random_bytes_are_an_error(tmp_path: Path) -> None:
    rnd = random.Random(3)
    for _ in range(ROUNDS):
        assert attempt(tmp_path / "noise.py", rnd.randbytes(rnd.randint(1, 400))) is not None


def test_random_options_are_taken_or_refused(tmp_path: Path) -> None:
    rnd = random.Random(4)
    keys = "chips l1d.size l3.ways topology routing links.clock dram.channels params.x probe_filter name x. .. l1d".split()
    values = "0 1 -1 8 3 64KiB 2.4GHz 5ns x16 true [] [[0]] {} 0-1 ring mesh 1e9 999999999999999999 nan \U0001f600 '".split()
    for _ in range(ROUNDS):
        text = f"{rnd.choice(keys)}{rnd.choice(['=', '=', '=', '=', ''])}{rnd.choice(values)}"
        attempt(tmp_path / "same.py", SOURCE, text)


@pytest.mark.long
def test_many_mutations(tmp_path: Path) -> None:
    rnd = random.Random(5)
    for _ in range(5000):
        data = bytearray(SOURCE)
        for _ in range(rnd.randint(1, 30)):
            data[rnd.randrange(len(data))] = rnd.randrange(256)
        attempt(tmp_path / "changed.py", bytes(data))
