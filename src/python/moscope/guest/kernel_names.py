# SPDX-License-Identifier: BSD-3-Clause
"""Names of the project's kernel: `stock`, `pk`, `upstream`, and mixes such as `pk-7` and `stock+7,14`.

All are one image; the name becomes the kernel parameter `moscope.fix=`, which chooses the form of each contention point. Another
build of the kernel has the name of its variant after it, as in `pk@split` (`guest/kernel.py`).
"""

import re
from itertools import pairwise
from pathlib import Path

from moscope import paths
from moscope.errors import UserError, nearest, unknown_name
from moscope.guest import kernel_patches

SETTINGS = ("stock", "pk", "upstream")
FORMS = "stock, pk, upstream, stock+N,N or pk-N,N"
PARAMETER = "moscope.fix"
_MIX = re.compile(r"(stock\+|pk-)([0-9]+(?:,[0-9]+)*)")


def folder() -> Path:
    return paths.root() / "kernels"


def numbers() -> list[int]:
    """The fixes that can be switched."""
    return [fix.number for fix in kernel_patches.fixes() if not fix.variant]


def is_ours(name: str) -> bool:
    """Whether `name` has the form of a setting of the project's kernel, valid or not: `pk-99` has it, `distro` and `pk-9/vmlinux` do
    not."""
    return "/" not in name and (name in SETTINGS or re.match(r"(stock|pk|upstream)\s*[-+@]", name) is not None)


def setting(name: str) -> str:
    """The value of `moscope.fix=` for a name, in its canonical form: numbers in order."""
    if name in SETTINGS:
        return name
    match = _MIX.fullmatch(name)
    if not match:
        examples = ["stock", "pk", "upstream", *(f"{base}{n}" for base in ("stock+", "pk-") for n in numbers())]
        close = sorted(nearest(name, examples), key=examples.index)
        raise UserError(f'--kernel: no kernel called "{name}": expected {FORMS}'
                        + (f", such as {' or '.join(close)}" if close else ""))
    listed = sorted(int(number) for number in match.group(2).split(","))
    if twice := [number for number, following in pairwise(listed) if number == following]:
        raise UserError(f"--kernel: {name}: fix {twice[0]} appears twice: expected each fix once")
    wrong = [number for number in listed if number not in numbers()]
    if wrong:
        known = ", ".join(map(str, numbers())) or "none"
        raise UserError(f"--kernel: {name}: fix {wrong[0]} cannot be switched in this kernel: expected some of {known}")
    return match.group(1) + ",".join(map(str, listed))


def unknown(name: str, others: tuple[str, ...]) -> UserError:
    """The error for a name of no kernel."""
    return unknown_name("--kernel", "kernel", name, (*others, *SETTINGS), f"{', '.join(others)}, {FORMS}, or a file")
