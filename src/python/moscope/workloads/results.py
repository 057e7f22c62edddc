# SPDX-License-Identifier: BSD-3-Clause
"""The results that a workload prints: lines `moscope: FAMILY key=value ...`, the last of which has `verify=ok` or `verify=wrong`."""

import re
from dataclasses import dataclass

_LAST = re.compile(r"moscope: (\S+) .*\bverify=")
_PAIR = re.compile(r"([a-z_]+)=(\S+)")


@dataclass(frozen=True)
class Results:
    """All keys of a family's lines on a console, the last value of each; numbers as such."""

    values: dict[str, str | float]

    @staticmethod
    def of(console: str, family: str) -> "Results":
        values: dict[str, str | float] = {}
        for line in console.replace("\r", "").splitlines():
            # The line may also contain the shell's prompt or typed text.
            _, found, rest = line.partition(f"moscope: {family} ")
            if found:
                values |= {key: _number(value) for key, value in _PAIR.findall(rest)}
        return Results(values)

    @staticmethod
    def missing(console: str, family: str) -> str:
        """What is wrong with a console on which the family has printed no results."""
        names = [name for name in _LAST.findall(console) if name != family]
        return f"printed results as {names[-1]}: expected `moscope: {family} ...`" if names else "printed no results"

    @property
    def finished(self) -> bool:
        return "verify" in self.values

    @property
    def right(self) -> bool:
        """Whether the workload's own check of its results holds."""
        return self.values.get("verify") == "ok"

    @property
    def clients(self) -> dict[str, int]:
        """The counts of the clients of a service, from their start to their end, which its launcher prints; empty if there are none."""
        if "answers" not in self.values:
            return {}
        return {key: int(value) for key, value in self.values.items()
                if isinstance(value, float) and value.is_integer() and key != "cores"}


def _number(text: str) -> str | float:
    try:
        return float(text)
    except ValueError:
        return text
