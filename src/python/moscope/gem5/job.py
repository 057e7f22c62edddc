# SPDX-License-Identifier: BSD-3-Clause
"""Jobs for gem5: the JSON that the scripts in configs/gem5 read (moscope.gem5/1), and scripts of accesses with their
answers (src/mem/ruby/protocol/gem5/script_player.hh)."""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from moscope.gem5 import binary

SCHEMA = "moscope.gem5/1"
# From the end of a step to the next, so that everything that the step caused has ended, such as the transfer of victims across the
# machine.
SETTLE_FS = 5 * 10**9


@dataclass(frozen=True)
class ScriptedAccess:
    """One access. Accesses with the same `step` are issued at the same time."""

    step: int
    core: int
    op: str
    address: int


@dataclass(frozen=True)
class Answer:
    """The result of an access; times in femtoseconds."""

    issued: int
    done: int
    value: int

    @property
    def latency_fs(self) -> int:
        return self.done - self.issued


def two_sets_at_least(machine: dict[str, Any]) -> dict[str, Any]:
    """The elaborated machine with arrays that gem5 accepts: an array with one set (a tiny one, or a filter that is off) gets two."""
    def widened(value: Any) -> Any:
        if isinstance(value, dict) and value.get("sets") == 1:
            return {**value, "sets": 2, "bytes": 2 * value["bytes"]}
        return value

    controllers = [{**c, "params": {name: widened(value) for name, value in c["params"].items()}} for c in machine["controllers"]]
    return {**machine, "controllers": controllers}


def write_job(folder: Path, machine: dict[str, Any], interface: dict[str, Any], **job: Any) -> Path:
    """The job's file in `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "job.json"
    path.write_text(json.dumps({"schema": SCHEMA, "machine": two_sets_at_least(machine), "interface": interface, **job}), encoding="utf-8")
    return path


def write_script(path: Path, accesses: Iterable[ScriptedAccess]) -> None:
    with path.open("w", encoding="ascii") as out:
        out.writelines(f"{a.step} {a.core} {a.op} {a.address:#x}\n" for a in accesses)


def read_answers(path: Path) -> list[Answer]:
    with path.open(encoding="ascii") as lines:
        return [Answer(int(w[1]), int(w[2]), int(w[3])) for w in map(str.split, lines)]


def play(gem5: binary.Gem5, machine: dict[str, Any], interface: dict[str, Any], accesses: list[ScriptedAccess],
         folder: Path, options: list[str] | None = None, settle_fs: int = SETTLE_FS) -> list[Answer]:
    """Plays accesses on a fresh machine. The next step begins `settle_fs` after the end of a step. gem5's statistics stay in
    `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    script = (folder / "script.txt").resolve()
    write_script(script, accesses)
    path = write_job(folder, machine, interface, script=str(script), settle_fs=settle_fs)
    binary.run(gem5, "play_script.py", [str(path)], folder, options).ending()
    answers = read_answers(folder / "accesses.txt")
    if len(answers) != len(accesses):
        raise binary.Gem5Died(f"it answered {len(answers)} of {len(accesses)} accesses")
    return answers


def random_test(gem5: binary.Gem5, machine: dict[str, Any], interface: dict[str, Any], loads: int, folder: Path,
                seed: int = 1, flush: bool = False) -> float:
    """Runs gem5's own random tester; returns the host seconds that it took. ProtocolError if it found a fault."""
    path = write_job(folder, machine, interface, loads=loads, flush=flush, seed=seed)
    return binary.run(gem5, "random_test.py", [str(path)], folder).ending()[1]
