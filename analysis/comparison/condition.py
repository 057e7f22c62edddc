# SPDX-License-Identifier: BSD-3-Clause
"""The conditions of `--fail-if`: comparisons of differences with numbers, joined by `and`, `or` and parentheses.

    throughput_per_s < -5%                       B is more than 5 % below A
    us_per_op > 20 or kernel_share > 0.1         differences in the figure's own unit
"""

import operator
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import lark

from analysis.comparison.pairs import FIGURES
from analysis.tables.base import Row

GRAMMAR = r"""
?any: all ("or" all)*
?all: one ("and" one)*
?one: "(" any ")" | test
test: NAME RELATION NUMBER [PERCENT]
NAME: /(?!(and|or)\b)[A-Za-z_]\w*/
RELATION: "<=" | ">=" | "<" | ">"
PERCENT: "%"
NUMBER: /[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?/
%ignore /\s+/
"""
EXAMPLE = "such as 'throughput_per_s < -5%', joined by and, or and parentheses"
WORDS = {"NAME": "a figure", "RELATION": "<, <=, > or >=", "NUMBER": "a number", "PERCENT": '"%"', "LPAR": '"("', "RPAR": '")"',
         "AND": '"and"', "OR": '"or"', "$END": "the end"}
RELATIONS: dict[str, Callable[[float, float], bool]] = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}


class ConditionError(ValueError):
    """Reads `what: problem: expected ...`, or has the name of a figure that there is not."""

    def __init__(self, text: str, unknown: str = "") -> None:
        super().__init__(text)
        self.unknown = unknown


@dataclass(frozen=True)
class Test:
    figure: str
    relation: str
    limit: float
    relative: bool

    def __str__(self) -> str:
        return f"{self.figure} {self.relation} {100 * self.limit if self.relative else self.limit:g}{'%' if self.relative else ''}"

    def holds(self, figures: dict[str, Row]) -> bool:
        row = figures.get(self.figure)
        if row is None:
            raise ConditionError(f"{self.figure}: has no difference between these points: expected one of {', '.join(figures)}")
        value = row["difference"]
        if self.relative and value:  # from 0 to 0 are 0 %
            value = row["relative"]
            if value is None:
                raise ConditionError(f"{self.figure}: is 0 in A: expected a condition without %")
        return RELATIONS[self.relation](value, self.limit)


@dataclass(frozen=True)
class Joined:
    """All or any of the parts. A part that cannot be tested matters only if the others leave the answer open."""

    every: bool
    parts: tuple[Any, ...]

    def holds(self, figures: dict[str, Row]) -> bool:
        untested: ConditionError | None = None
        for part in self.parts:
            try:
                if part.holds(figures) != self.every:
                    return not self.every
            except ConditionError as error:
                untested = untested or error
        if untested:
            raise untested
        return self.every


class _Build(lark.Transformer[Any, Any]):
    def test(self, parts: list[Any]) -> Test:
        name, relation, number, percent = parts
        if str(name) not in FIGURES:
            raise ConditionError(str(name), unknown=str(name))
        return Test(str(name), str(relation), float(number) / (100 if percent else 1), percent is not None)

    def any(self, parts: list[Any]) -> Joined:
        return Joined(False, tuple(parts))

    def all(self, parts: list[Any]) -> Joined:
        return Joined(True, tuple(parts))


_parser = lark.Lark(GRAMMAR, start="any", parser="lalr", maybe_placeholders=True)


def parse(text: str) -> Test | Joined:
    """Raises ConditionError."""
    try:
        return _Build().transform(_parser.parse(text))  # type: ignore[no-any-return]
    except lark.UnexpectedInput as error:
        at = getattr(error, "pos_in_stream", None)
        place = len(text.rstrip()) if at is None or at < 0 or isinstance(error, lark.UnexpectedToken) and error.token.type == "$END" else at
        seen = text[place:].split()
        what = f'"{seen[0]}" at character {place + 1}' if seen else "the condition ends too early"
        raise ConditionError(f"{text}: {what}: expected {_wanted(error)}, {EXAMPLE}") from None
    except lark.exceptions.VisitError as error:
        raise error.orig_exc from None


def _wanted(error: lark.UnexpectedInput) -> str:
    names: Iterable[str] = getattr(error, "accepts", None) or getattr(error, "expected", None) or getattr(error, "allowed", None) or ()
    return ", ".join(dict.fromkeys(WORDS.get(name, name) for name in sorted(names))) or "a condition"
