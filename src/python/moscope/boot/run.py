# SPDX-License-Identifier: BSD-3-Clause
"""Runs a planned boot and writes its folder of results."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from moscope import jsonio
from moscope.boot import console, engine, result, session
from moscope.boot.plan import Plan
from moscope.boot.session import Outcome


def run(plan: Plan, show: Callable[[bytes], None] | None = None,
        terminal: console.Terminal | None = None) -> tuple[Outcome, dict[str, Any], bytes]:
    """Runs the guest and writes the results; returns outcome, document and the console's bytes."""
    with jsonio.atomic_dir(plan.out) as folder:
        system = engine.create(plan.config)
        if plan.resume:
            system.restore(str(plan.resume))
        log_file = folder / result.CONSOLE
        with log_file.open("wb") as log:
            outcome = session.Session(system, plan, log, folder / result.CHECKPOINT, show, terminal).run()
        log_bytes = log_file.read_bytes()
        outcome = replace(outcome, script_status=session.script_status(log_bytes))
        document = result.document(plan, outcome)
        result.write(folder, plan, outcome, document)
    return outcome, document, log_bytes


def plain_terminal(json: bool) -> tuple[Callable[[bytes], None] | None, console.Terminal | None]:
    """Where the console goes: nowhere with --json, to an interactive terminal if there is one, otherwise to stdout."""
    if json:
        return None, None
    terminal = console.Terminal()
    return terminal.show, terminal if console.is_interactive() else None

