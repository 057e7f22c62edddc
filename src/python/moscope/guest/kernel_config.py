# SPDX-License-Identifier: BSD-3-Clause
"""The configuration of the project's kernel: kernels/config/moscope.config, optionally overridden by the file of a
variant.

A variant is one file beside it, `NAME.config`. Its lines replace the common ones of the same options.
"""

from pathlib import Path

from moscope.errors import unknown_name
from moscope.guest import kernel_names

COMMON = "moscope"


def folder() -> Path:
    return kernel_names.folder() / "config"


def common() -> Path:
    return folder() / f"{COMMON}.config"


def variants() -> list[str]:
    return sorted(file.stem for file in folder().glob("*.config") if file.stem != COMMON)


def check(variant: str) -> None:
    """UserError where there is no such variant; none at all ("") is the common configuration."""
    if variant and variant not in variants():
        raise unknown_name("--variant", "variant of the kernel", variant, variants())


def file_of(variant: str) -> Path:
    return folder() / f"{variant or COMMON}.config"


def fragment(variant: str) -> str:
    """The options that replace those of `allnoconfig`."""
    text = common().read_text(encoding="utf-8")
    return laid_over(text, file_of(variant).read_text(encoding="utf-8")) if variant else text


def options(variant: str) -> str:
    """The lines of a variant's file without its remarks, which do not change what is built."""
    return "\n".join(line for line in file_of(variant).read_text(encoding="utf-8").splitlines() if _option(line))


def laid_over(lower: str, upper: str) -> str:
    """Both fragments together, without the lines of `lower` whose options `upper` also sets."""
    replaced = {_option(line) for line in upper.splitlines()} - {""}
    kept = [line for line in lower.splitlines() if _option(line) not in replaced]
    return "\n".join(kept) + "\n\n" + upper


def disregarded(wanted: str, got: str) -> list[str]:
    """Lines of the fragment `wanted` that are missing in the configuration made from it."""
    lines = set(got.splitlines())
    wrong = []
    for line in wanted.splitlines():
        name = _option(line)
        if not name:
            continue
        none = line == f"{name}=n"
        if none and any(one.startswith(f"{name}=") for one in lines) or not none and line not in lines:
            wrong.append(line)
    return wrong


def _option(line: str) -> str:
    """The option that a line sets, empty for a remark."""
    name, equals, _ = line.partition("=")
    return name if equals and not line.startswith("#") else ""
