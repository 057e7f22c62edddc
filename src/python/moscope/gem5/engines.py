# SPDX-License-Identifier: BSD-3-Clause
"""The option `--engine` of the commands that gem5 can also run."""

from pathlib import Path

from moscope.errors import UserError, unknown_name

ENGINES = ("embedded", "gem5")
FORMER = {"moscope": "embedded"}  # names that earlier versions had, which scripts may still give


def is_gem5(engine: str, gem5: Path | None) -> bool:
    """Whether gem5 is to run the command. A path to gem5 together with the other engine is an error."""
    engine = FORMER.get(engine, engine)
    if engine not in ENGINES:
        raise unknown_name("--engine", "engine", engine, ENGINES)
    if gem5 is not None and engine != "gem5":
        raise UserError(f"--gem5 {gem5}: the engine is {engine}: expected --engine gem5, too")
    return engine == "gem5"
