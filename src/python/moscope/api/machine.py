# SPDX-License-Identifier: BSD-3-Clause
"""A machine in Python code: a machine that moscope supplies or a machine file, and the changed parameters under their `--set` names."""

import os
from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, Union

from moscope.api import html
from moscope.api.values import mapping, place, text
from moscope.config import ConfigError, load_machine, machine_names, walk
from moscope.config import Machine as Description
from moscope.config.keys import known_keys
from moscope.schema.errors import suggest

if TYPE_CHECKING:
    import pyarrow

AnyMachine = Union[str, "os.PathLike[str]", "Machine"]


def machines() -> list[str]:
    """The names of the machines that moscope supplies (docs/machines.md)."""
    return machine_names()


class Machine:
    """A machine description with some parameters changed. It is immutable; `with_` returns a changed copy.

    `Machine("opteron48")` is a machine that moscope supplies, `Machine("mine.py")` a machine file of your own. A parameter is
    named as `--set` names it, with underscores for dots: `Machine("opteron48", links_clock="2.4GHz")`. In a mapping it has its
    own name: `Machine("opteron48", {"links.clock": "2.4GHz"})`. Values are texts with units, numbers or booleans; the topology
    is a name or a list of pairs of chips.

    Raises UserError, as the command line does, for a name, a parameter or a value that is not accepted.
    """

    def __init__(self, base: AnyMachine = "opteron48", values: Mapping[str, Any] | None = None, /, **named: Any) -> None:
        given = base if isinstance(base, Machine) else None
        self.base: str = given.base if given else place("--machine", base, "a name or a path") or ""
        self.changes: dict[str, str] = dict(given.changes) if given else {}
        mapped = mapping("moscope.Machine", values)
        if named:
            keys = {key.replace(".", "_"): key for key in known_keys(load_machine(self.base))}
            for name, value in named.items():
                if name not in keys and name not in keys.values():
                    raise ConfigError(f"unknown key {name}", suggest(name, list(keys)), "moscope.Machine")
                if keys.get(name, name) in mapped:
                    raise ConfigError(f"{keys.get(name, name)} is given both in the mapping and as a keyword", "one of the two",
                                      "moscope.Machine")
                self._change(keys.get(name, name), value)
        for key, value in mapped.items():
            self._change(key, value)
        self.description  # noqa: B018  checked here, where the mistake is

    def _change(self, key: str, value: Any) -> None:
        self.changes.pop(key, None)  # the last change of a parameter counts, and errors name it last
        self.changes[key] = text_of(value)

    def with_(self, values: Mapping[str, Any] | None = None, /, **named: Any) -> "Machine":
        """Another machine, with these parameters changed as well."""
        return Machine(self, values, **named)

    @property
    def sets(self) -> list[str]:
        """The changes as `--set` takes them: `KEY=VALUE`."""
        return [f"{key}={value}" for key, value in self.changes.items()]

    @cached_property
    def description(self) -> Description:
        """The whole description, checked."""
        return load_machine(self.base, self.sets)

    @property
    def name(self) -> str:
        return self.description.name

    @property
    def cores(self) -> int:
        return self.description.cores

    @property
    def chips(self) -> int:
        return int(self.description.chips)

    @property
    def edges(self) -> list[tuple[int, int]]:
        """The links, as pairs of chips."""
        return [(e.a, e.b) for e in self.description.edges()]

    @property
    def hops(self) -> list[list[int]]:
        """The number of links between chips: a list per chip, with an entry per chip."""
        return self.description.hops()

    @property
    def parameters(self) -> "pyarrow.Table":
        """Every parameter: `key`, `value` (text with its unit), `source` (what the value was taken from), `changed`."""
        from moscope.api.tables import table

        return table(PARAMETERS, [{"key": row.key, "value": str(row.value), "source": row.source, "changed": row.key in self.changes}
                                  for row in walk(self.description)])

    def __getitem__(self, key: str) -> str:
        """The value of a parameter as text: `machine["links.clock"]`."""
        key = text("moscope.Machine", key) or ""
        for row in walk(self.description):
            if row.key == key:
                return str(row.value)
        raise ConfigError(f"unknown key {key}", suggest(key, known_keys(self.description)), "moscope.Machine")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Machine) and (self.base, self.changes) == (other.base, other.changes)

    def __hash__(self) -> int:
        return hash((self.base, *sorted(self.changes.items())))

    def __repr__(self) -> str:
        return f"Machine({self.base!r}{f', {self.changes}' if self.changes else ''})"

    def _repr_html_(self) -> str:
        rows = [[key, value] for key, value in self.changes.items()]
        title = f"{self.name}: {self.chips} chips, {self.cores} cores"
        return html.table(title, ["parameter", "changed to"], rows) if rows else html.heading(title)


PARAMETERS = {"key": "string", "value": "string", "source": "string", "changed": "bool"}


def machine_of(machine: AnyMachine) -> Machine:
    return machine if isinstance(machine, Machine) else Machine(machine)


def is_topology(value: Any) -> bool:
    """Whether it is a list of pairs of chips."""
    return isinstance(value, (list, tuple)) and bool(value) and all(
        isinstance(pair, (list, tuple)) and len(pair) == 2 and not any(isinstance(end, (list, tuple)) for end in pair) for pair in value)


def text_of(value: Any) -> str:
    """A value as `--set` takes it."""
    if isinstance(value, bool):
        return str(value).lower()
    if is_topology(value):
        return " ".join(f"{a}-{b}" for a, b in value)
    return str(value)
