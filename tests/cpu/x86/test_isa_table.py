# SPDX-License-Identifier: BSD-3-Clause
"""The table of instructions: all that CPUID promises is there, the rest is masked with a reason."""

import json
import re
from pathlib import Path
from types import ModuleType

import pytest

from moscope import jsonio
from moscope.config import load_machine
from moscope.config.cpu import cpu_json
from moscope.isa import report as isa
from moscope.isa import tests as isa_tests


@pytest.fixture(scope="module")
def rows(engine: ModuleType) -> dict[tuple[str, str], isa.Row]:
    return {(r.mnemonic, r.set): r for r in isa.table(load_machine("opteron48"))}


def test_nothing_that_cpuid_promises_is_lacking(rows: dict[tuple[str, str], isa.Row]) -> None:
    assert not {r.mnemonic: r.lacking for r in rows.values() if r.status == "lacking"}
    assert len(rows) > 550


def test_each_instruction_is_in_a_group_or_masked_for_a_reason(rows: dict[tuple[str, str], isa.Row]) -> None:
    for r in rows.values():
        assert (r.status == "masked" and r.note and not r.group) or (r.status == "implemented" and r.group), r


@pytest.mark.parametrize("mnemonic, status", [
    ("add", "implemented"), ("vmrun", "masked"), ("pfadd", "masked"), ("extrq", "implemented"), ("popcnt", "implemented"),
    ("cmpxchg16b", "implemented"), ("fsin", "implemented"), ("iretq", "implemented"), ("rdtscp", "implemented")])
def test_an_instruction_has_the_expected_status(rows: dict[tuple[str, str], isa.Row], mnemonic: str, status: str) -> None:
    assert {r.status for r in rows.values() if r.mnemonic == mnemonic} == {status}


def test_each_instruction_that_cannot_be_compared_with_the_host_has_its_own_test(rows: dict[tuple[str, str], isa.Row]) -> None:
    assert {r.mnemonic: r.untested for r in rows.values() if r.untested} == {}


def test_a_form_without_a_test_is_said_to_have_none() -> None:
    assert isa.how_tested("arpl", 2, 1, ["system", "other"])[1] == ("other",)
    assert isa.how_tested("hlt", 1, 0, ["far"]) == ("no test: far", ("far",))


@pytest.fixture(scope="module")
def apart(engine: ModuleType) -> dict[str, set[str]]:
    """Why forms of each instruction are apart."""
    found: dict[str, set[str]] = {}
    for r in json.loads(engine.isa_table(json.dumps(cpu_json(load_machine("opteron48"))))):
        found.setdefault(r["mnemonic"], set()).update(r["apart"])
    return found


def words(suite: str, name: str, file: Path) -> set[str]:
    """Of a test's name and body, in lower case; none if the test is not there."""
    text = file.read_text(encoding="utf-8")
    found = re.search(rf"^TEST(?:_F|_P)?\({suite}, {name}\) \{{.*?^\}}", text, re.MULTILINE | re.DOTALL)
    if not found:
        return set()
    return {w.lower() for w in [*re.findall(r"\w+", found.group()), *re.findall(r"[A-Z][a-z0-9]*", name)]}


@pytest.mark.parametrize("tested", isa_tests.TESTS, ids=lambda t: f"{t.test}-{t.reason}")
def test_each_test_that_is_listed_exists_and_names_its_instructions(apart: dict[str, set[str]], root: Path,
                                                                    tested: isa_tests.Tested) -> None:
    suite, name = tested.test.split(".")
    said = words(suite, name, root / tested.file)
    assert said, "there is no such test"
    for mnemonic in tested.mnemonics:
        assert tested.reason in apart[mnemonic], mnemonic
        assert {mnemonic, f"{mnemonic}f", f"{mnemonic}q"} & said, mnemonic


@pytest.mark.parametrize("mnemonic", ["pshufb", "crc32", "aesenc", "rdrand", "xgetbv", "tzcnt", "movbe", "invpcid"])
def test_instructions_of_later_processors_are_not_listed(rows: dict[tuple[str, str], isa.Row], mnemonic: str) -> None:
    assert not [r for r in rows.values() if r.mnemonic == mnemonic]


def test_a_promise_without_an_implementation_is_found(engine: ModuleType) -> None:
    """The check itself can fail: with SSSE3's bit set, its instructions are promised and lack."""
    cpu = cpu_json(load_machine("opteron48"))
    next(leaf for leaf in cpu["leaves"] if leaf["function"] == 1)["ecx"] |= 1 << 9
    found = {r["mnemonic"]: r for r in json.loads(engine.isa_table(json.dumps(cpu)))}
    assert found["pshufb"]["promised"] and found["pshufb"]["lacking"]


def test_the_command_follows_its_schema(moscope) -> None:  # type: ignore[no-untyped-def]
    got = moscope("isa", "--json")
    assert got.returncode == 0, got.stderr
    document = json.loads(got.stdout)
    jsonio.validate(document)
    assert document["ok"] and document["counts"]["lacking"] == 0
