# SPDX-License-Identifier: BSD-3-Clause
"""Phrases that readers stumble over, and the one form of an error: `what: problem: expected ...`."""

import ast
import re
from pathlib import Path

import pytest
import repository

from moscope import paths

ROOT = paths.root()
READ = {".py", ".cc", ".hh", ".md", ".slicc", ".sm"}
# Words are put together here so that this file does not find itself. Texts of guests stay: their length is part of a guest's layout.
BANNED = re.compile("|".join([
    "would be " + "right", "as busy " + "as", "of its own " + "kind", "lets " + "stand",
    # Name the actor, or the message.
    r"\bto" + r"ld\b", r"\bnobo" + r"dy\b", r"\bsomebo" + r"dy\b",
    # lookahead, message between processes, prefetch, skipped spin iterations
    r"\bhori" + r"zons?\b", r"\bpar" + r"cels?\b", r"\bfore" + r"sight\b", r"\bdo" + r"z(?:e|es|ed|ing)\b",
]), re.IGNORECASE)
QUOTED = re.compile("nobo" + "dy cared")  # messages of the kernel
# Files and folders with such words; one that is clean leaves the list.
NOT_CLEAN: tuple[str, ...] = ()
GUESTS = ("kernels/patches/", "workloads/")
# Tests of texts that guests print.
OF_GUESTS = {"tests/boot/test_project_kernel.py", "tests/workloads/test_host.py"}


def names(*under: str) -> list[str]:
    if not (ROOT / ".git").exists():
        pytest.skip("words are read in the repository's files: this copy has no git folder")
    return repository.files(ROOT, *under)


def banned(name: str, text: str) -> list[str]:
    return [f"{name}:{i}: {line.strip()}" for i, line in enumerate(text.splitlines(), 1) if BANNED.search(QUOTED.sub("", line))]


def test_no_banned_phrase() -> None:
    found = [fault for name in names()
             if Path(name).suffix in READ and not name.startswith(GUESTS) and name not in OF_GUESTS
             for fault in banned(name, (ROOT / name).read_text(encoding="utf-8"))]
    new = [fault for fault in found if not fault.startswith(NOT_CLEAN)]
    assert not new, "docs/glossary.md has the terms:\n" + "\n".join(new)
    idle = [name for name in NOT_CLEAN if not any(fault.startswith(name) for fault in found)]
    assert not idle, f"these are clean and leave the list NOT_CLEAN: {idle}"


@pytest.mark.parametrize("text, count", [
    ("the home is to" + "ld of the store", 1),
    ("Nobo" + "dy waits", 1),
    ("a hori" + "zon", 1),
    ("irq 9: nobo" + "dy cared", 0),
    ("a retold parceled storytold", 0),
])
def test_the_check_finds_whole_words_and_no_messages_of_the_kernel(text: str, count: int) -> None:
    assert len(banned("x", text)) == count


def bad_errors(name: str) -> list[str]:
    """User errors written as plain texts with two colons and no `expected`."""
    found = []
    for node in ast.walk(ast.parse((ROOT / name).read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "UserError" and node.args:
            text = node.args[0]
            if isinstance(text, ast.Constant) and isinstance(text.value, str) and ": expected " not in text.value:
                found.append(f"{name}:{node.lineno}: {text.value}")
    return found


def test_user_errors_say_what_was_expected() -> None:
    found = [fault for name in names("src/python", "analysis") if name.endswith(".py") for fault in bad_errors(name)]
    assert not found, "\n".join(found)
