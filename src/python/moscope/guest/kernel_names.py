# SPDX-License-Identifier: BSD-3-Clause
"""Names of the project's kernel: `stock`, `pk`, `upstream`, and mixes such as `pk-7` and `stock+7,14`.

All are one image; the name becomes the kernel parameter `moscope.fix=`, which chooses the form of each contention point.
"""

import importlib.util
import re
import sys
from functools import cache
from pathlib import Path
from types import ModuleType

from moscope import paths
from moscope.errors import UserError, nearest, unknown_name

SETTINGS = ("stock", "pk", "upstream")
PARAMETER = "moscope.fix"
_MIX = re.compile(r"(stock\+|pk-)([0-9]+(?:,[0-9]+)*)")


def folder() -> Path:
    return paths.root() / "kernels"


@cache
def table() -> ModuleType:
    """kernels/fixes.py."""
    file = folder() / "fixes.py"
    spec = importlib.util.spec_from_file_location("moscope_kernel_fixes", file)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def numbers() -> list[int]:
    """The fixes that can be switched."""
    return sorted(fix.number for fix in table().FIXES)


def patches() -> list[Path]:
    """The series, in the order in which it is applied."""
    names = [*table().COMMON, *(fix.patch for fix in table().FIXES)]
    return [folder() / "patches" / name for name in sorted(names)]


def is_ours(name: str) -> bool:
    """Whether `name` reads as a setting of the project's kernel, sound or not: `pk-99` does, `distro` does not."""
    return name in SETTINGS or re.match(r"(stock|pk|upstream)\s*[-+]", name) is not None


def setting(name: str) -> str:
    """The value of `moscope.fix=` for a name, in the one way of writing it: numbers in order, each once."""
    if name in SETTINGS:
        return name
    match = _MIX.fullmatch(name)
    if not match:
        examples = ["stock", "pk", "upstream", *(f"{base}{n}" for base in ("stock+", "pk-") for n in numbers())]
        close = nearest(name, examples)
        raise UserError(f'--kernel: no kernel called "{name}": '
                        + (f"nearest are {', '.join(close)}" if close else "stock+N,N or pk-N,N would be right"))
    listed = sorted({int(number) for number in match.group(2).split(",")})
    wrong = [number for number in listed if number not in numbers()]
    if wrong:
        known = ", ".join(map(str, numbers())) or "none"
        raise UserError(f"--kernel: {name}: fix {wrong[0]} cannot be switched in this kernel: of the fixes {known} would be right")
    return match.group(1) + ",".join(map(str, listed))


def unknown(name: str, others: tuple[str, ...]) -> UserError:
    """The answer to a name that is no kernel's."""
    return unknown_name("--kernel", "kernel", name, (*others, *SETTINGS))
