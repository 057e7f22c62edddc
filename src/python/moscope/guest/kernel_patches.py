# SPDX-License-Identifier: BSD-3-Clause
"""The patches of the project's kernel, read from their own headers: the registry of the fixes.

A patch is one file of `kernels/patches`: an SPDX line, fields (`Name: value`, continued by indented lines), an empty
line, prose, a line `---`, and the diff. A patch with a `Fix` field is a fix that the boot parameter `moscope.fix=`
switches; its number is that of the MOSBENCH paper's figure 1, or one above. Every setting contains the others. A patch with a
`Variant` field is part of the builds of that variant only; if it is a fix, all of them have it, and no parameter switches it. A
build depends on the diffs only, so that a change of a header rebuilds nothing.
"""

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from moscope import paths
from moscope.errors import UserError

SPDX = "SPDX-License-Identifier: GPL-2.0"
LARGEST = 31  # the highest number in the kernel's bit masks; MOSCOPE_FIXES of 00-common.patch is the paper's highest
FIX_FIELDS = ("Fix", "Title", "Applications", "Stock", "PK", "Upstream", "Differs")
STRESS_FIELDS = ("Stress-test", "Operation", "Load", "Line", "Waits-in")
_FIELD = re.compile(r"([A-Z][A-Za-z-]*): +(\S.*)")


@dataclass(frozen=True)
class Stress:
    """The stress test of a fix. Without the fix, the largest stall is on the line that contains the fields `line`, in one of the
    functions `waits_in`. The first field is the one that the fix concerns; cores may wait longer for another field that is read
    together with it."""

    workload: str  # its name
    program: str  # the folder in workloads that registers it
    variant: str  # of the program; empty: it has none
    operation: str
    load: str
    line: tuple[str, ...]
    waits_in: frozenset[str]


@dataclass(frozen=True)
class Fix:
    """`stock`, `pk` and `upstream` say what the kernel does in that setting; `files` are those that the diff changes."""

    number: int
    title: str
    applications: tuple[str, ...]
    stock: str
    pk: str
    upstream: str
    differs: str  # how the forms differ from 2.6.35 or PK
    patch: str
    files: tuple[str, ...]
    stress: Stress | None
    variant: str  # of the kernel build; empty: a boot parameter switches the fix

    @property
    def kernels(self) -> tuple[str, str]:
        """Names of two kernels: `pk` without this fix and with it."""
        return ("pk", f"pk@{self.variant}") if self.variant else (f"pk-{self.number}", "pk")


@dataclass(frozen=True)
class Patch:
    path: Path
    fields: Mapping[str, str]
    prose: str
    diff: str

    @property
    def digest(self) -> str:
        return hashlib.sha256(self.diff.encode()).hexdigest()


def folder() -> Path:
    return paths.root() / "kernels" / "patches"


def series() -> list[Path]:
    """All patches, in the order in which they are applied."""
    return sorted(folder().glob("*.patch"))


def series_of(variant: str) -> list[Path]:
    """The patches of one build; "" is the ordinary build."""
    return [path for path in series() if read(path).fields.get("Variant", variant) == variant]


def read(path: Path) -> Patch:
    head, separator, diff = path.read_text(encoding="utf-8").partition("\n---\n")
    spdx, _, head = head.partition("\n")
    if not separator or spdx != SPDX:
        raise UserError(f"{path}: no header: expected the line `{SPDX}`, fields, and a line `---` before the diff")
    block, _, prose = head.partition("\n\n")
    fields: dict[str, str] = {}
    name = ""
    for line in block.splitlines():
        match = _FIELD.fullmatch(line)
        if match and match[1] not in fields:
            name = match[1]
            fields[name] = match[2]
        elif name and line.startswith(" "):
            fields[name] += " " + line.strip()
        else:
            raise UserError(f'{path}: header: "{line}": expected `Name: value`, each name once')
    _check(path, fields)
    return Patch(path, fields, prose, diff)


def fixes() -> list[Fix]:
    """The fixes of all builds, by number."""
    return list(_fixes(tuple(series())))


def stressed_by(program: str) -> list[tuple[Fix, Stress]]:
    """The fixes whose stress test is a workload of this program, with their stress tests."""
    return [(fix, fix.stress) for fix in fixes() if fix.stress and fix.stress.program == program]


@cache
def _fixes(patches: tuple[Path, ...]) -> tuple[Fix, ...]:
    by_number: dict[int, Fix] = {}
    for patch in map(read, patches):
        if "Fix" in patch.fields:
            fix = _fix(patch)
            if fix.number in by_number:
                raise UserError(f"{patch.path}: Fix: {fix.number}: {by_number[fix.number].patch} has this number: expected another")
            by_number[fix.number] = fix
    return tuple(by_number[number] for number in sorted(by_number))


def _check(path: Path, fields: Mapping[str, str]) -> None:
    allowed = {"Variant", *FIX_FIELDS, *STRESS_FIELDS} if "Fix" in fields else {"Variant", "Title"}
    needed = {"Title"} if "Fix" not in fields else {*FIX_FIELDS, *(STRESS_FIELDS if set(STRESS_FIELDS) & set(fields) else ())}
    if unknown := sorted(set(fields) - allowed):
        raise UserError(f"{path}: header: unknown field {unknown[0]}: expected one of {', '.join(sorted(allowed))}")
    if missing := sorted(needed - set(fields)):
        raise UserError(f"{path}: header: no field {missing[0]}: expected {', '.join(sorted(needed))}")


def _fix(patch: Patch) -> Fix:
    fields, path = patch.fields, patch.path
    if not (fields["Fix"].isascii() and fields["Fix"].isdigit() and 1 <= int(fields["Fix"]) <= LARGEST):
        raise UserError(f"{path}: Fix: {fields['Fix']}: expected a number from 1 to {LARGEST}")
    number, variant = int(fields["Fix"]), fields.get("Variant", "")
    asked = {int(n) for n in re.findall(r"^\+.*?moscope_(?:stock|pk)\((\d+)\)", patch.diff, re.MULTILINE)}
    if asked != (set() if variant else {number}):
        raise UserError(f"{path}: the diff asks for {', '.join(f'moscope_stock({n})' for n in sorted(asked)) or 'no form'}: "
                        f"expected {'none, as the variant has the fix' if variant else f'moscope_stock({number}) or moscope_pk({number})'}")
    stress = None
    if "Stress-test" in fields:
        program, _, load = fields["Stress-test"].partition(" ")
        stress = Stress(f"{program}-{number}", program, load, fields["Operation"], fields["Load"],
                        tuple(_list(fields["Line"])), frozenset(_list(fields["Waits-in"])))
    return Fix(number, fields["Title"], tuple(_list(fields["Applications"])), fields["Stock"], fields["PK"], fields["Upstream"],
               fields["Differs"], path.name, tuple(re.findall(r"^\+\+\+ b/(\S+)", patch.diff, re.MULTILINE)), stress, variant)


def _list(text: str) -> list[str]:
    return [part.strip() for part in text.split(",")]
