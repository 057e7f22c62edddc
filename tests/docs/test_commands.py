# SPDX-License-Identifier: BSD-3-Clause
"""Every command line of the Markdown pages is one that moscope accepts: the command exists, and so do its options."""

import re
import shlex
from pathlib import Path
from typing import Any

import markdown_pages
import pytest
import typer
from typer.exceptions import TyperException

from moscope import bootstrap, cli, paths
from moscope.errors import MoscopeError

ROOT = paths.root()
CALL = "./moscope"
# What may stand before a call on its line: a prompt, variables, another command or the comment that names one.
BEFORE = re.compile(r" *(\$ )?([A-Z_0-9]+=\S+ )*|.*(&& |[|;] |\$\(|#.*)")
IN_TEXT = re.compile(r"`(?:\./)?moscope ([a-z-]+ [^`]*)`")
ENDS = {"&&", "||", "|", ";", ">", ">>", "2>", "<", "&"}


def calls(text: str) -> list[tuple[int, str]]:
    """Line number and text of each line of a code block that calls moscope, with the lines that a backslash adds."""
    found = []
    for block in markdown_pages.FENCE.finditer(text):
        number = text.count("\n", 0, block.start()) + 1
        lines = block[0].splitlines()
        for i, line in enumerate(lines):
            if CALL in line:
                while line.endswith("\\") and i + 1 < len(lines):
                    i += 1
                    line = line[:-1] + lines[i]
                found.append((number + i, line))
    return found


def arguments_of(line: str) -> list[list[str]]:
    """The arguments of each call of moscope on a line of shell."""
    words = shlex.split(line.replace("$(", "; ").replace(")", " ; "), comments=True)
    starts = [i + 1 for i, word in enumerate(words) if word == CALL]
    return [words[i:next((k for k in range(i, len(words)) if words[k] in ENDS), len(words))] for i in starts]


def refusal(arguments: list[str]) -> str:
    """Why moscope would refuse these arguments for their names alone; empty: it would not."""
    if arguments[:1] == ["build"]:  # the launcher's own, of targets
        try:
            bootstrap.build_targets(arguments[1:])
        except MoscopeError as e:
            return str(e)
        return ""
    app = typer.Typer()
    try:
        cli._fill(app, "moscope.commands", arguments, "moscope")
        app.callback(invoke_without_command=True)(cli._top)
        at: Any = typer.main.get_command(app)
        rest = list(arguments)
        while rest and not rest[0].startswith("-") and hasattr(at, "commands"):
            at = at.commands[rest.pop(0)]
        at.make_parser(at.context_class(at, resilient_parsing=False)).parse_args(rest)
    except MoscopeError as e:
        return str(e)
    except TyperException as e:
        return e.format_message()
    return ""


def faults(page: Path) -> list[str]:
    text = page.read_text(encoding="utf-8")
    found = []
    for number, line in calls(text):
        before = line[:line.index(CALL)]
        if not BEFORE.fullmatch(before):
            found.append(f"{page}:{number}: {before!r} before {CALL}: expected the call at the beginning of a line")
            continue
        # A page on commands may make one.
        known = [call for call in arguments_of(line) if f"src/python/moscope/commands/{call[0] if call else ''}.py" not in text]
        found += [f"{page}:{number}: {' '.join(call)}: {why}" for call in known if (why := refusal(call))]
    return found + faults_in_text(markdown_pages.page(page))


def faults_in_text(page: markdown_pages.Page) -> list[str]:
    """The same of commands in code font, which may end with the name of an option alone."""
    found = []
    for match in IN_TEXT.finditer(page.without(markdown_pages.FENCE)):
        for call in arguments_of(f"{CALL} {match[1]}"):
            why = refusal(call)
            if why and "requires an argument" not in why:
                found.append(f"{page.path}:{page.line_of(match.start())}: {' '.join(call)}: {why}")
    return found


def options(path: tuple[str, ...] = ()) -> dict[str, list[tuple[str, ...]]]:
    """The options of every command below `path`, by the command's name; an option that can be switched off has two forms."""
    package = ".".join(["moscope.commands", *path]).replace("-", "_")
    found: dict[str, list[tuple[str, ...]]] = {}
    for name, module in cli._names_in(package).items():
        called = (*path, name)
        if (paths.PACKAGE / "/".join(module.split(".")[1:])).is_dir():
            found |= options(called)
            continue
        app = typer.Typer()
        cli._fill(app, "moscope.commands", list(called), "moscope")
        command: Any = typer.main.get_command(app)
        for part in called:
            command = command.commands[part]
        found[" ".join(called)] = [(*p.opts, *p.secondary_opts) for p in command.params if p.opts[0].startswith("--")]
    return found


def test_each_option_of_a_command_is_on_a_page() -> None:
    pages = "\n".join(path.read_text(encoding="utf-8") for path in markdown_pages.pages() if path.name != "CHANGELOG.md")
    named = set(re.findall(r"--[a-z0-9]+(?:-[a-z0-9]+)*", pages))
    found = options()
    assert ("--in-flight",) in found["protocol check"]
    missing = [f"{name} {forms[0]}" for name, all_forms in found.items() for forms in all_forms if not named & set(forms)]
    assert not missing, f"no page in docs/ names {', '.join(missing)}: expected each option in the page that describes its command"


@pytest.mark.parametrize("path", [p for p in markdown_pages.pages() if CALL in p.read_text(encoding="utf-8")],
                         ids=lambda p: str(p.relative_to(ROOT)))
def test_moscope_accepts_every_command_of_the_page(path: Path) -> None:
    found = faults(path)
    assert not found, "\n".join(found)


@pytest.mark.parametrize("text, wrong", [
    ("./moscope run --cores 4 --json | head -1   # what --nonsense gives", 0),
    ("$ MOSCOPE_VARIANT=asan ./moscope test && ./moscope build unit_tests", 0),
    ("./moscope run --workload falseshare \\\n    --cores 4", 0),
    ("./moscope run --workload falseshare \\\n    --coress 4", 1),
    ("./moscope runs", 1),
    ("./moscope run --cores", 1),
    ("the falsely shared line ./moscope run", 1),
    ("```\nSee `moscope run --cores`, `./moscope run\n--workload exim` and `moscope`.\n```", 0),
    ("```\nSee `moscope run --coress`.\n```", 1),
])
def test_the_check_finds_what_moscope_would_refuse(tmp_path: Path, text: str, wrong: int) -> None:
    (tmp_path / "page.md").write_text(f"```\n{text}\n```\n")
    assert len(faults(tmp_path / "page.md")) == wrong
