# SPDX-License-Identifier: BSD-3-Clause
"""Completion in bash, zsh and fish: typer's, with the values that options and arguments take.

The shell starts moscope with `_MOSCOPE_COMPLETE` set and the words typed so far in the environment; the answer has to be there in
a few tenths of a second. Therefore only the command on the line is imported, and values are computed only if they are needed.
"""

import copy
import os
import re
import shlex
from collections.abc import Callable, Iterable
from typing import Annotated, Any, get_args, get_origin

from moscope import buildproto, paths
from moscope.bootstrap import COMPLETE as VARIABLE
from moscope.errors import UserError, unknown_name

PROGRAM = "moscope"
SHELLS = ("bash", "zsh", "fish")
# A metavar that consists of names, such as `table|full`: the names are the values.
NAMES = re.compile(r"[a-z0-9]+(\|[a-z0-9]+)+")


def asked() -> bool:
    return VARIABLE in os.environ


def words() -> list[str]:
    """The finished words after the program's name."""
    if "COMP_WORDS" in os.environ:  # bash
        return _split(os.environ["COMP_WORDS"])[1:int(os.environ.get("COMP_CWORD") or 1)]
    line = os.environ.get("_TYPER_COMPLETE_ARGS", "")
    found = _split(line)[1:]
    return found if line.endswith(" ") else found[:-1]


def _split(line: str) -> list[str]:
    try:
        return shlex.split(line)
    except ValueError:  # within a quotation
        return line.split()


# --- values ---------------------------------------------------------------------------------------------------------------


def machines() -> list[str]:
    from moscope.config import machine_names

    return machine_names()


def parameters() -> list[str]:
    from moscope.config import load_machine
    from moscope.config.keys import known_keys

    return [f"{key}=" for key in known_keys(load_machine("opteron48"))]


def workloads() -> list[str]:
    from moscope import workloads

    return [w.name for w in workloads.every()]


def kernels() -> list[str]:
    from moscope.guest import kernel, kernel_names

    mixes = [f"{base}{n}" for base in ("pk-", "stock+") for n in kernel_names.numbers()]
    return [*kernel.NAMES, *kernel_names.SETTINGS, *mixes]


def examples() -> list[str]:
    from moscope.stepping import examples

    return examples.names()


def exports() -> list[str]:
    return [file.stem for file in (paths.root() / "analysis" / "exports").glob("[a-z]*.py") if file.stem != "base"]


#: The values of parameters, by the name of the parameter.
VALUES: dict[str, Callable[[], Iterable[str]]] = {
    "machine": machines, "sets": parameters, "workload": workloads, "kernel": kernels, "protocol": buildproto.known_protocols,
    "example": examples, "to": exports,
}


def with_values(name: str, kind: Any) -> Any:
    """The annotation of a command's parameter, extended by a function that completes its values."""
    if get_origin(kind) is not Annotated or not hasattr(get_args(kind)[1], "autocompletion"):
        return kind
    information = copy.copy(get_args(kind)[1])
    metavar = information.metavar or ""
    if NAMES.fullmatch(metavar):
        information.autocompletion = _completer(lambda: metavar.split("|"), listed=False)
    elif name in VALUES and metavar != "NAME|DIR":
        information.autocompletion = _completer(VALUES[name], metavar.endswith(",.."))
    return Annotated[get_args(kind)[0], information]


def _completer(values: Callable[[], Iterable[str]], listed: bool) -> Callable[[str], list[str]]:
    """A function that completes names. `listed`: the parameter takes several names with commas between them; the text up to the
    last comma stays."""

    def complete(incomplete: str) -> list[str]:
        before, comma, _ = incomplete.rpartition(",") if listed else ("", "", "")
        return [f"{before}{comma}{value}" for value in values() if value not in before.split(",")]

    return complete


# --- scripts --------------------------------------------------------------------------------------------------------------


def script(shell: str) -> str:
    """The script that a shell reads to complete `moscope`, also under other paths such as `./moscope`."""
    from typer._completion_shared import get_completion_script

    text = get_completion_script(prog_name=PROGRAM, complete_var=VARIABLE, shell=shell)
    # typer's scripts for zsh and fish start the program on PATH, not the one on the command line.
    typed = {"zsh": (f"complete_zsh {PROGRAM}", "complete_zsh ${~words[1]}"),
             "fish": (f"(commandline -cp) {PROGRAM}", "(commandline -cp) (commandline -opc)[1]")}
    return text.replace(*typed[shell]) if shell in typed else text


def install(shell: str) -> str:
    """Puts the script where the shell reads it; returns its place."""
    from typer._completion_shared import install as typer_install

    _, path = typer_install(shell=shell, prog_name=PROGRAM, complete_var=VARIABLE)
    path.write_text(script(shell) + "\n", encoding="utf-8")
    return str(path)


def shell_of(option: str, given: str) -> str:
    """The shell that the option names, or the shell from which moscope was started."""
    name = given
    if not name:
        import shellingham

        try:
            name = shellingham.detect_shell()[0]
        except shellingham.ShellDetectionFailure:
            raise UserError(f"{option}: unknown shell: expected one of {', '.join(SHELLS)}") from None
    if name not in SHELLS:
        raise unknown_name(option, "shell", name, SHELLS)
    return name
