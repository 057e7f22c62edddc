# SPDX-License-Identifier: BSD-3-Clause
"""Joins ES modules into one script, so that a page opened from a file needs no second file.

Every module imports names by `import { a, b } from "./x.js";`, or from "../folder/x.js", and exports declarations. The joined script
has one scope: each top-level name must be unique, which is checked here.
"""

import posixpath
import re
from pathlib import Path

IMPORT = re.compile(r'^import \{[^}]*\} from "(\.{1,2}/[\w./-]+\.js)";\n', re.MULTILINE)
DECLARATION = re.compile(r"^(?:export )?(?:async )?(?:function\*?|class|const|let) (\w+)", re.MULTILINE)
EXPORT = re.compile(r"^export ", re.MULTILINE)


class BadModule(Exception):
    """A module that cannot be joined with the others."""


def bundle(folder: Path, entry: str) -> str:
    """The script of `entry` and of all modules that it imports, each after those that it uses."""
    texts: dict[str, str] = {}
    _collect(folder, entry, texts, ())
    owner: dict[str, str] = {}
    for name, text in texts.items():
        for declared in DECLARATION.findall(text):
            if declared in owner:
                raise BadModule(f"{name}: {declared}: is also declared in {owner[declared]}: expected names that differ")
            owner[declared] = name
    return "\n".join(f"// {name}\n{EXPORT.sub('', IMPORT.sub('', text))}" for name, text in texts.items())


def _collect(folder: Path, name: str, texts: dict[str, str], within: tuple[str, ...]) -> None:
    if name in within:
        raise BadModule(f"{name}: imports itself by way of {' and '.join(within)}: expected modules without cycles")
    if name in texts:
        return
    text = (folder / name).read_text(encoding="utf-8")
    for used in IMPORT.findall(text):
        _collect(folder, posixpath.normpath(posixpath.join(posixpath.dirname(name), used)), texts, (*within, name))
    texts[name] = text
