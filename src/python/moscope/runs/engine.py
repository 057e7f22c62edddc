# SPDX-License-Identifier: BSD-3-Clause
"""The engine's functions that a measured point needs in addition to those of a boot (src/python/bindings/system.cc), as
protocols that tests can replace.
"""

import json
from typing import Any, Protocol

from moscope import patience
from moscope.boot import engine
from moscope.config import Machine, elaborate
from moscope.config.bindings import Roles, roles_of
from moscope.naming.rows import PackedRows


class System(engine.System, Protocol):
    """`counts` has `instructions`, `spun` (those in spin loops), `ticks`, `operations`. `step_until` answers as `step`
    does, with the state `time` at the simulated time. `stats_json` counts from the last `reset_stats` on."""

    def counts(self) -> dict[str, int]: ...
    def step_until(self, until: int, host_ms: int) -> dict[str, Any]: ...
    def enter_detailed(self) -> None: ...
    def leave_detailed(self, host_ms: int) -> bool: ...  # False: call it again
    def reset_stats(self) -> None: ...
    def watch_pages(self, format: str) -> None: ...  # JSON of a Namer's page_format
    def what_if(self, lines: str) -> None: ...  # JSON of analysis/whatif/lines.py; board/otherwise.hh
    def watch_code(self, places: str) -> None: ...  # JSON of runs/functions.py, before restore; board/program_probes.hh
    def allocations(self) -> tuple[bytes, bytes]: ...  # board/allocations.hh
    def code_report(self) -> str: ...  # JSON: for each place, how often it was called, and whether a core reached it
    def stats_json(self) -> str: ...
    def network(self) -> dict[str, Any]: ...  # counts and depths of a network card
    def rings(self) -> list[tuple[str, int, str, int, int]]: ...  # device, queue, part, physical address, bytes
    def attribution_rows(self) -> PackedRows: ...
    def keep_attribution(self) -> None: ...  # the moment for kept_attribution_rows
    def kept_attribution_rows(self) -> PackedRows: ...
    def record_epochs(self) -> None: ...
    def epoch_record(self) -> bytes: ...  # since record_epochs
    def episodes(self) -> bytes: ...  # transaction records of the lines with the most transactions
    def loads(self) -> bytes: ...  # of cores that overlap their misses; attribution/loads_in_flight.hh

    def stacks(self) -> bytes: ...  # samples of waiting cores; attribution/stack_samples.hh
    def stop_stacks(self) -> None: ...
    def physical_of(self, dram: int) -> int: ...
    def read_physical(self, address: int, size: int) -> bytes: ...
    def read_virtual(self, cr3: int, address: int, size: int) -> bytes: ...


def create(config: dict[str, Any]) -> System:
    from moscope import _engine

    system: System = _engine.System(json.dumps(config))
    return system


def detailed(machine: Machine, say: Any) -> dict[str, Any]:
    """The configuration of detailed mode: the elaborated machine, its protocol's library, which is built if necessary, and the age at
    which a request counts as lost."""
    from moscope import buildproto

    built = buildproto.ensure_protocol(str(machine.protocol), report=say)
    interface = json.loads(built.interface.read_text(encoding="utf-8"))
    elaborated = elaborate(machine, interface, runs_guest=True)
    return {"machine": elaborated, "library": str(built.timing),
            "watchdog_fs": patience.limit(patience.EXPERIMENT_FS, patience.slowness(machine, elaborated))}


def machine_states(machine: Machine) -> dict[str, list[str]]:
    """The states of each kind of controller, by their numbers in transaction records."""
    from moscope import buildproto

    interface = json.loads(buildproto.ensure_protocol(str(machine.protocol)).interface.read_text(encoding="utf-8"))
    return {str(one["type"]): [str(state["name"]) for state in one["states"]] for one in interface["machines"]}


def machine_roles(machine: Machine) -> dict[str, Roles]:
    """The role of each kind of controller in the machine, from the protocol's interface."""
    from moscope import buildproto

    interface = json.loads(buildproto.ensure_protocol(str(machine.protocol)).interface.read_text(encoding="utf-8"))
    return {str(one["type"]): roles_of(one) for one in interface["machines"]}


def machine_types() -> list[str]:
    """The kinds of controllers, by their numbers in transaction records."""
    from moscope import _engine

    return list(_engine.MACHINE_TYPES)
