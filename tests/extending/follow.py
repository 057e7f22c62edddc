# SPDX-License-Identifier: BSD-3-Clause
"""Follows a guide of docs/extending in a copy of the checkout: writes its files, runs its commands, checks their output.

A comment on the line above a fenced block says what the block is. Blocks without one are only shown.

| comment | the block below it |
|---|---|
| `<!-- file: PATH -->` | the whole text of a new file, or the new text of an old one |
| `<!-- append: PATH -->` | text added at the end of a file |
| `<!-- insert: PATH after "TEXT" -->` | text added below the one line of a file that contains TEXT |
| `<!-- replace: PATH line "TEXT" -->` | text in place of that line |
| `<!-- run -->`, `<!-- run: exit N -->` | a shell command, run in the checkout, with exit code 0 or N |
| `<!-- expect -->` | text that the command above it prints: its lines in this order, runs of blanks count as one |

`<!-- slow -->` on the first line below the title marks a guide that takes longer than the quick tests may.
"""

import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

MARK = re.compile(r"<!-- (file|append|insert|replace|run|expect)(?:: (.+?))? -->\s*$")
AT = {"insert": re.compile(r'(\S+) after "(.+)"$'), "replace": re.compile(r'(\S+) line "(.+)"$')}  # path, text
SLOW = "<!-- slow -->"
WRITES = ("file", "append", *AT)
SECONDS = 900  # for one command


class GuideError(Exception):
    """A guide that cannot be followed, or whose commands do not print what it promises."""


@dataclass(frozen=True)
class Block:
    kind: str  # file, append, insert, replace, run, expect
    argument: str  # path, or exit code
    text: str
    line: int  # of the comment, from 1


def is_slow(guide: str) -> bool:
    lines = [line.strip() for line in guide.splitlines() if line.strip()]
    return SLOW in lines[:2]


def blocks(guide: str, name: str = "guide") -> list[Block]:
    """The marked blocks of a guide, in order."""
    lines = guide.splitlines()
    found: list[Block] = []
    at = 0
    while at < len(lines):
        mark = MARK.match(lines[at])
        if mark:
            if at + 1 == len(lines) or not lines[at + 1].startswith("```"):
                raise GuideError(f"{name}:{at + 1}: no fence below the comment: expected ``` on the next line")
            found.append(_block(mark, lines, at, name))
        at = _end_of_fence(lines, at + 1 if mark else at, name)
    _check_order(found, name)
    return found


def _end_of_fence(lines: list[str], at: int, name: str) -> int:
    """The line below the fenced block that opens at `at`, or the next line if none does."""
    if not lines[at].startswith("```"):
        return at + 1
    for end in range(at + 1, len(lines)):
        if lines[end].rstrip() == "```":
            return end + 1
    raise GuideError(f"{name}:{at + 1}: the block does not end: expected a line ```")


def _block(mark: re.Match[str], lines: list[str], at: int, name: str) -> Block:
    kind, argument = mark[1], mark[2] or ""
    if kind in WRITES and not argument:
        raise GuideError(f"{name}:{at + 1}: {kind} names no path: expected <!-- {kind}: PATH -->")
    if kind in AT and not AT[kind].match(argument):
        word = "after" if kind == "insert" else "line"
        raise GuideError(f'{name}:{at + 1}: {kind} says no place: expected <!-- {kind}: PATH {word} "TEXT" -->')
    if kind == "run" and not re.fullmatch(r"(exit \d+)?", argument):
        raise GuideError(f"{name}:{at + 1}: run: {argument}: expected <!-- run --> or <!-- run: exit N -->")
    end = _end_of_fence(lines, at + 1, name)
    return Block(kind, argument, "".join(line + "\n" for line in lines[at + 2:end - 1]), at + 1)


def _check_order(found: list[Block], name: str) -> None:
    before = ""
    for block in found:
        if block.kind == "expect" and before != "run":
            raise GuideError(f"{name}:{block.line}: expect follows no command: expected <!-- run --> before it")
        before = block.kind
    if before != "expect":
        raise GuideError(f"{name}: the guide checks nothing at its end: expected <!-- run -->, then <!-- expect -->")


def copy_checkout(root: Path, to: Path, variant: str) -> None:
    """Copies what git tracks or would add, and the build folder with its times, so that only what changes is rebuilt."""
    listed = subprocess.run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], cwd=root,
                            capture_output=True, text=True, check=False)
    names = listed.stdout.split("\0") if listed.returncode == 0 else _without_git(root)
    for name in sorted(filter(None, set(names))):
        if (root / name).is_file() or (root / name).is_symlink():
            (to / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(root / name, to / name, follow_symlinks=False)
    build = Path("build") / variant
    if (root / build).is_dir():
        shutil.copytree(root / build, to / build, symlinks=True, ignore=shutil.ignore_patterns("*.log", ".lock"))


def _without_git(root: Path) -> list[str]:
    skip = {"build", "__pycache__", ".git"}
    return [str(p.relative_to(root)) for p in root.rglob("*") if not skip & set(p.relative_to(root).parts)]


def follow(guide: str, checkout: Path, name: str = "guide") -> None:
    """Does in `checkout` what the guide says. GuideError: a command fails, or prints something else."""
    output = ""
    for block in blocks(guide, name):
        where = f"{name}:{block.line}"
        if block.kind == "run":
            output = _run(block, checkout, where)
        elif block.kind == "expect":
            _expect(block, output, where)
        else:
            write(block, checkout, where)


def writing(guide: str, name: str) -> list[Block]:
    """The blocks that change files."""
    return [block for block in blocks(guide, name) if block.kind in WRITES]


def written(block: Block) -> str:
    """The path of the file that the block changes."""
    return _place(block)[0]


def _place(block: Block) -> tuple[str, str]:
    """The file, and the text in the line at which the block goes; no text if it is not at a line."""
    at = AT[block.kind].match(block.argument) if block.kind in AT else None
    return (at[1], at[2]) if at else (block.argument, "")


def write(block: Block, checkout: Path, where: str) -> None:
    """Changes the file. GuideError: it, or the place in it, does not exist."""
    name, text = _place(block)
    path = checkout / name
    if not path.resolve().is_relative_to(checkout.resolve()):
        raise GuideError(f"{where}: {block.argument}: expected a path within the checkout")
    if block.kind == "file":
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(block.text, encoding="utf-8")
        return
    if not path.is_file():
        raise GuideError(f"{where}: {path.name} does not exist: expected an old file to {block.kind} to")
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    end = start = len(lines)
    if text:
        found = [i for i, line in enumerate(lines) if text in line]
        if len(found) != 1:
            raise GuideError(f"{where}: {len(found)} lines contain {text!r}: expected one")
        end = found[0] + 1
        start = found[0] if block.kind == "replace" else end
    path.write_text("".join([*lines[:start], block.text, *lines[end:]]), encoding="utf-8")


def _run(block: Block, checkout: Path, where: str) -> str:
    unwanted = ("PYTHONPATH", "MOSCOPE_NOT_BUILT")
    env = {k: v for k, v in os.environ.items() if k not in unwanted and not k.startswith("PYTEST_")}
    env |= {"NO_COLOR": "1", "TERM": "dumb", "COLUMNS": "200"}
    got = subprocess.run(["bash", "-euo", "pipefail", "-c", block.text], cwd=checkout, env=env, text=True, errors="replace",
                         stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=SECONDS, check=False)
    wanted = int(block.argument.removeprefix("exit ") or 0)
    if got.returncode != wanted:
        raise GuideError(f"{where}: exit code {got.returncode}: expected {wanted}\n{block.text}\n{got.stdout[-4000:]}")
    return got.stdout


def _expect(block: Block, output: str, where: str) -> None:
    rest = [" ".join(line.split()) for line in output.splitlines()]
    for line in filter(None, (" ".join(line.split()) for line in block.text.splitlines())):
        found = next((i for i, text in enumerate(rest) if line in text), None)
        if found is None:
            raise GuideError(f"{where}: the command did not print: expected {line!r} in\n{output[-4000:]}")
        rest = rest[found + 1:]
