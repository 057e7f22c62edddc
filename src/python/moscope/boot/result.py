# SPDX-License-Identifier: BSD-3-Clause
"""The results of a boot: `boot.json` (moscope.boot/1), the console, the configuration, the registers of a dead guest, and a
checkpoint if one was requested.
"""

import resource
from pathlib import Path
from typing import Any

from moscope import errors, jsonio
from moscope.boot import session
from moscope.boot.plan import Plan
from moscope.boot.session import DEATHS, END_OF_TIME, FATAL, LACKING, STOPPED, Outcome

SCHEMA = "moscope.boot/1"
# Ends of a machine by which a script is cut short.
CUTS = {"poweroff": "the guest powered off", "reset": "the guest reset the machine"}
CONSOLE, CHECKPOINT, REGISTERS = "console.txt", "machine.ckpt", "registers.txt"


def document(plan: Plan, outcome: Outcome) -> dict[str, Any]:
    """The command's JSON object; paths are final, as after the folder is renamed."""
    info = plan.config["info"]
    result: dict[str, Any] = {
        "schema": SCHEMA, "ok": exit_code(plan, outcome) == errors.OK, "ended": outcome.ended,
        "machine": info["machine"], "cores": plan.config["cores"], "nodes": plan.nodes, "seed": plan.config["seed"],
        "memory_per_node": plan.config["memory_per_node"], "kernel": info["kernel"], "append": info["append"],
        "instructions": outcome.instructions, "instructions_per_core": outcome.per_core,
        "executed": outcome.executed,
        "simulated_s": outcome.ticks / 1e15, "host_s": round(outcome.host_s, 3), "mips": round(outcome.mips, 3),
        "pauses": outcome.pauses, "touched_bytes": outcome.touched_bytes,
        "host_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10, "console": str(plan.out / CONSOLE),
    }
    if outcome.unknown_msrs:
        result["unknown_msrs"] = {f"{n:#x}": count for n, count in sorted(outcome.unknown_msrs.items())}
    if outcome.network:
        result["network"] = outcome.network
    if outcome.detail:
        result["detail"] = outcome.detail
    if outcome.script_status is not None:
        result["script_status"] = outcome.script_status
    if outcome.ended == "exit":
        result["exit_status"] = outcome.status
    if outcome.checkpoint_taken:
        result["checkpoint"] = str(plan.out / CHECKPOINT)
    if outcome.registers:
        result["registers"] = str(plan.out / REGISTERS)
    return result


def exit_code(plan: Plan, outcome: Outcome) -> int:
    """The exit code of the contracts; also 1 for a script that failed and for a checkpoint that was not reached."""
    if outcome.ended in (*DEATHS, END_OF_TIME) or cut_short(plan, outcome):
        return errors.GuestDied.exit_code
    if outcome.ended == LACKING:
        return errors.SimulatorBug.exit_code
    if outcome.ended == "interrupted":
        return errors.INTERRUPTED
    failed = bool(outcome.script_status) or (outcome.ended == "exit" and outcome.status != 0)
    missed = plan.checkpoint_at is not None and not outcome.checkpoint_taken and outcome.ended not in STOPPED
    return errors.FOUND if failed or missed else errors.OK


def cut_short(plan: Plan, outcome: Outcome) -> str:
    """How the guest ended before its script did, as text; empty if it did not. A script may end the run by an exit status."""
    scripted = plan.config["info"].get("script") and outcome.script_status is None
    how = CUTS.get(outcome.ended, "") if scripted else ""
    return how and f"the script did not end: {how}"


def remarks(plan: Plan, outcome: Outcome) -> list[str]:
    """Why a run that ended by itself is not ok, as text."""
    said = []
    if outcome.script_status:
        said.append(f"the script ended with status {outcome.script_status}")
    if outcome.ended == "exit" and outcome.status:
        said.append(f"the guest ended the run with status {outcome.status}")
    if plan.checkpoint_at and not outcome.checkpoint_taken:
        said.append(f'--checkpoint-at: the console never showed "{plan.checkpoint_at}"')
    return said


def death(plan: Plan, outcome: Outcome, log: bytes) -> errors.MoscopeError | None:
    """The error of a guest that died, ended before its script, or used an instruction the model lacks: the cause, the last console
    lines, and the registers of a dead guest. None for other ends."""
    if short := cut_short(plan, outcome):
        return errors.GuestDied(f"{short}\n--- the console's last lines\n{session.tail(log)}")
    if outcome.ended not in FATAL:
        return None
    kind, how = session.fatal(outcome.ended, outcome.detail)
    return kind(f"{how}\n--- the console's last lines\n{session.tail(log)}\n--- registers\n{outcome.registers}")


def write(folder: Path, plan: Plan, outcome: Outcome, result: dict[str, Any]) -> None:
    """Writes everything except console and checkpoint, which are written during the run."""
    (folder / "boot.json").write_text(jsonio.dumps(result) + "\n", encoding="utf-8")
    (folder / "config.json").write_text(jsonio.dumps(plan.config) + "\n", encoding="utf-8")
    if outcome.registers:
        (folder / REGISTERS).write_text(outcome.registers + "\n", encoding="utf-8")
