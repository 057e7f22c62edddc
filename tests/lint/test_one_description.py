# SPDX-License-Identifier: BSD-3-Clause
"""What src/schema describes is written down nowhere else: no list of an enumeration's names, no second declaration of a
described type, no second layout of a record, no second value of a constant. Tests and pages may name values: a test says
what it expects, and pages are compared with the descriptions (tests/schema/test_pages.py)."""

import ast
import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from moscope import paths
from moscope.schema import catalogue, constants
from moscope.schema.describe import Counters, Enumeration, Record

ROOT = paths.root()
FOLDERS = ("src", "analysis", "configs", "workloads", "kernels")
ENOUGH = 3  # names of one enumeration side by side are a list of them
ENUMERATIONS = [d for d in catalogue.ALL.values() if isinstance(d, Enumeration)]
RECORDS = [d for d in catalogue.ALL.values() if isinstance(d, Record | Counters)]
CONSTANTS = {name for name in vars(constants) if name.isupper()}
COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
DECLARED = re.compile(r"\b(enum\s+)?(?:struct|class)\s+(\w+)(?:\s+final)?\s*(?::[^;{]*)?\{")
# Lists that are not of the described values, although they share words with them.
OTHERS: dict[str, str] = {
    "configs/dram/_jedec.py": "tables of DRAM standards are also executed without the package",
    "configs/gem5/machine_system.py": "gem5 runs it, without the package",
    "src/mem/ruby/protocol/gem5/script_player.hh": "gem5 compiles it, which has no headers of the build",
    "src/python/moscope/protocol/check.py": "abilities of a protocol, one of them DMA, under the names of accesses",
    "src/python/moscope/gem5/random_test.py": "the abilities of a protocol that gem5's tester leaves out",
}


def names_listed(words: list[str]) -> str | None:
    """The enumeration of which `words`, elements of one list, name several members."""
    for e in ENUMERATIONS:
        if len({w for w in words if w in e.members}) >= min(ENOUGH, len(e)):
            return e.name
    return None


def python_faults(text: str) -> Iterator[str]:
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Assign) and not any(isinstance(n, ast.Call) for n in ast.walk(node.value)):
            again = {n.id for target in node.targets for n in ast.walk(target) if isinstance(n, ast.Name)} & CONSTANTS
            yield from (f"{node.lineno}: the constant {name}" for name in sorted(again))
        if isinstance(node, ast.List | ast.Tuple | ast.Set):
            elements, firsts = node.elts, [e.elts[0] for e in node.elts if isinstance(e, ast.Tuple) and e.elts]
        elif isinstance(node, ast.Dict):
            elements, firsts = [k for k in node.keys if k is not None], []
        else:
            continue
        words, columns = ([e.value for e in of if isinstance(e, ast.Constant) and isinstance(e.value, str)] for of in (elements, firsts))
        if found := names_listed(words):
            yield f"{node.lineno}: names of {found}"
        for record in RECORDS:
            names = {f.name for f in (record.fields if isinstance(record, Record) else record.counters)}
            if len(names & set(columns)) > max(ENOUGH, len(names) // 2):
                yield f"{node.lineno}: the layout of {record.name}"


def cxx_faults(text: str) -> Iterator[str]:
    code = COMMENT.sub(lambda c: re.sub(r"[^\n]", " ", c[0]), text)
    for e in ENUMERATIONS:
        names = "|".join(e.members)
        # Values by name: {"busy", "idle", ...} or an enumeration's own {busy, idle, ...}, but no uses as X::busy.
        word = rf'(?:"(?:{names})"|(?<![\w:.>"])(?:{names})(?![\w"(.]))'
        for found in re.finditer(rf"{word}(?:[\s,{{}}]*,[\s,{{}}]*{word}){{{ENOUGH - 1},}}", code):
            yield f"{code.count(chr(10), 0, found.start()) + 1}: names of {e.name}"
    for found in DECLARED.finditer(code):
        d = catalogue.ALL.get(found[2])
        # Other namespaces have types of their own by that name (a segment of the x86 processor).
        if d and bool(found[1]) == isinstance(d, Enumeration) and (f"namespace {d.namespace} {{" in code or "namespace" not in code):
            yield f"{code.count(chr(10), 0, found.start()) + 1}: the type {found[2]}"


def json_faults(text: str) -> Iterator[str]:
    def walk(part: object) -> Iterator[str]:
        if isinstance(part, dict):
            for inner in part.values():
                yield from walk(inner)
        elif isinstance(part, list):
            if found := names_listed([w for w in part if isinstance(w, str)]):
                yield f"names of {found} in {part}"
            for inner in part:
                yield from walk(inner)

    yield from walk(json.loads(text))


FAULTS = {".py": python_faults, ".cc": cxx_faults, ".hh": cxx_faults, ".json": json_faults}


def sources() -> list[Path]:
    got = subprocess.run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", *FOLDERS], cwd=ROOT, capture_output=True,
                         text=True, check=False)
    named = [ROOT / f for f in got.stdout.split("\0") if f] or [p for folder in FOLDERS for p in (ROOT / folder).rglob("*")]
    return sorted(p for p in named if p.suffix in FAULTS and p.is_file() and not p.is_relative_to(ROOT / "src/schema"))


def test_what_is_described_is_written_nowhere_else() -> None:
    found = [f"{name}:{fault}" for p in sources() if (name := str(p.relative_to(ROOT))) not in OTHERS
             for fault in FAULTS[p.suffix](p.read_text(encoding="utf-8"))]
    assert not found, "src/schema describes these already:\n" + "\n".join(found)


@pytest.mark.parametrize("suffix, text", [
    (".py", 'SEGMENTS = ("queue", "cache", "crossbar", "link")\n'),
    (".py", 'LABELS = {"cold": "Cold", "capacity": "Capacity", "upgrade": "Upgrade"}\n'),
    (".py", 'PAIRS = np.dtype([("writer", "<u8"), ("waiter", "<u8"), ("address_space", "<u8"), ("stall", "<i8"), ("spin", "<i8")])\n'),
    (".py", "LINE = 64\n"),
    (".py", "FS_PER_S, FS_PER_MS = 10**15, 10**12\n"),
    (".cc", 'constexpr const char *kNames[] = {"busy", "idle",\n    "core", "memory"};\n'),
    (".hh", "enum class Kind { cold, capacity, // had it\n upgrade };\n"),
    (".hh", "struct TransactionRecord {\n    long issued;\n};\n"),
    (".hh", "struct ChannelStats final {\n    long reads;\n};\n"),
    (".json", '{"properties": {"class": {"enum": ["cold", "capacity", "upgrade", "true_sharing", "false_sharing"]}}}'),
])
def test_a_second_list_or_layout_is_found(suffix: str, text: str) -> None:
    assert list(FAULTS[suffix](text))


@pytest.mark.parametrize("suffix, text", [
    (".py", 'x = ("busy", "core")\n'),
    (".cc", "charge(Charge::busy), charge(Charge::idle), charge(Charge::core);\n"),
    (".cc", "// busy, idle, core, memory\n"),
    (".hh", "struct TransactionRecord;\nclass Reader : public TransactionRecord {};\n"),
])
def test_uses_of_a_name_are_not_taken_for_lists(suffix: str, text: str) -> None:
    assert not list(FAULTS[suffix](text))
