# SPDX-License-Identifier: BSD-3-Clause
"""Quantities of a machine description: a value, its unit and its source.

`Frequency("2.4GHz", "P 5.1")` reads like the table that it was taken from. A quantity of the wrong kind
is refused with the unit that is wanted. Values are exact: frequencies are fractions of a hertz, times
are whole femtoseconds, sizes whole bytes. The second argument names where the value comes from (the
abbreviations are explained in docs/machines.md); it takes no part in comparisons.
"""

from __future__ import annotations

import re
from fractions import Fraction
from typing import Any, ClassVar

from moscope.schema.constants import FS_PER_S
from moscope.schema.errors import ConfigError

_NUMBER = re.compile(r"\s*([+-]?\d{1,18}(?:\.\d{1,18})?)\s*([A-Za-z]*)\s*\Z")
_MAX = 2**62  # everything ends up in signed 64-bit integers of the engine


def _shorten(text: object) -> str:
    shown = str(text)
    return repr(shown if len(shown) <= 40 else shown[:37] + "...")


class Quantity:
    """A number with a unit. Subclasses give the units as multiples of what they store."""

    kind: ClassVar[str]
    example: ClassVar[str]
    units: ClassVar[dict[str, Fraction]]
    hints: ClassVar[dict[str, str]] = {}
    whole: ClassVar[bool] = True
    least: ClassVar[int] = 0

    amount: Fraction
    source: str
    _text: str

    __slots__ = ("_text", "amount", "source")

    def __init__(self, text: str | Quantity, source: str = "") -> None:
        if isinstance(text, Quantity):
            if type(text) is not type(self):
                raise ConfigError(f"{text} is a {text.kind}", f"a {self.kind}, such as {self.example}")
            self.amount, self._text, self.source = text.amount, text._text, source or text.source
            return
        self.amount = self._parse(text)
        self._text = str(text).strip()
        self.source = source

    @classmethod
    def _parse(cls, text: object) -> Fraction:
        wanted = f"a {cls.kind}, such as {cls.example}"
        if isinstance(text, bool) or not isinstance(text, (str, int, float)):
            raise ConfigError(f"{_shorten(text)} is not a {cls.kind}", wanted)
        match = _NUMBER.match(str(text))
        if match is None:
            raise ConfigError(f"{_shorten(text)} is not a number with a unit", wanted)
        number, unit = match.groups()
        if unit not in cls.units:
            if not unit:
                what = f"{_shorten(text)} has no unit"
            else:
                owner = next((q.kind for q in KINDS if unit in q.units), None)
                what = f"{_shorten(text)} is a {owner}" if owner else f"{_shorten(text)} has the unknown unit {unit!r}"
            hint = cls.hints.get(unit)
            raise ConfigError(what, hint or f"{wanted} ({', '.join(u for u in cls.units if u)})")
        amount = Fraction(number) * cls.units[unit]
        if cls.whole and amount.denominator != 1:
            raise ConfigError(f"{_shorten(text)} is not a whole number of {cls._base()}", wanted)
        if amount < cls.least or amount > _MAX:
            raise ConfigError(f"{_shorten(text)} is out of range", f"{cls.least} {cls._base()} or more, and less than 2^62")
        return amount

    @classmethod
    def _base(cls) -> str:
        return next(u for u, f in cls.units.items() if f == 1 and u)

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and self.amount == other.amount

    def __lt__(self, other: Any) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return bool(self.amount < other.amount)

    def __hash__(self) -> int:
        return hash((type(self).__name__, self.amount))

    def __str__(self) -> str:
        return self._text

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._text!r})"


class Frequency(Quantity):
    """A clock. `hertz` is exact; `period` is the exact length of a cycle in femtoseconds."""

    kind, example, whole, least = "frequency", "2.4GHz", False, 1
    units = {"Hz": Fraction(1), "kHz": Fraction(10**3), "MHz": Fraction(10**6), "GHz": Fraction(10**9)}

    @property
    def hertz(self) -> Fraction:
        return self.amount

    @property
    def period(self) -> Fraction:
        return Fraction(FS_PER_S) / self.amount


class Time(Quantity):
    """A length of time, kept in whole femtoseconds."""

    kind, example = "time", "5ns"
    units = {u: Fraction(10**p) for u, p in (("fs", 0), ("ps", 3), ("ns", 6), ("us", 9), ("ms", 12), ("s", 15))}

    @property
    def fs(self) -> int:
        return int(self.amount)


class Size(Quantity):
    """An amount of memory in bytes; the prefixes are powers of 1024 and written so."""

    kind, example = "size", "64KiB"
    units = {u: Fraction(1 << p) for u, p in (("B", 0), ("KiB", 10), ("MiB", 20), ("GiB", 30), ("TiB", 40))}
    hints = {
        short: f"write {short[0].upper()}iB (powers of 1024)"
        for short in ("KB", "kB", "MB", "GB", "TB", "K", "M", "G", "T", "k")
    }

    @property
    def bytes(self) -> int:
        return int(self.amount)


class Cycles(Quantity):
    """A number of clock cycles; the field that holds it says of which clock."""

    kind, example = "number of cycles", "14cycles"
    units = {"cycles": Fraction(1), "cycle": Fraction(1), "": Fraction(1)}

    @property
    def count(self) -> int:
        return int(self.amount)


class Width(Quantity):
    """The width of a link in bits per direction, written as HyperTransport does: x16."""

    kind, example, least = "link width", "x16", 1
    units = {"bit": Fraction(1), "bits": Fraction(1)}

    @classmethod
    def _parse(cls, text: object) -> Fraction:
        if isinstance(text, str) and re.fullmatch(r"\s*x\d{1,4}\s*", text):
            text = text.strip()[1:] + "bit"
        amount = super()._parse(text)
        if amount > 1024 or amount % 2:
            raise ConfigError(f"{_shorten(text)} is not a link width", "x2, x4, x8, x16, x32 or several side by side, up to x1024")
        return amount

    @property
    def bits(self) -> int:
        return int(self.amount)


KINDS: tuple[type[Quantity], ...] = (Frequency, Time, Size, Cycles, Width)


class Count(int):
    """A plain whole number: cores, ways, channels."""

    source: str

    def __new__(cls, value: int | str, source: str = "") -> Count:
        wanted = "a whole number from 0, such as 8"
        if isinstance(value, bool) or not isinstance(value, (int, str)):
            raise ConfigError(f"{_shorten(value)} is not a count", wanted)
        if isinstance(value, str) and not re.fullmatch(r"\s*\+?\d{1,18}\s*", value):
            raise ConfigError(f"{_shorten(value)} is not a count", wanted)
        number = super().__new__(cls, value)
        if number < 0 or number > _MAX:
            raise ConfigError(f"{_shorten(value)} is out of range", wanted)
        number.source = source or getattr(value, "source", "")
        return number


class Flag:
    """On or off, written true or false."""

    __slots__ = ("source", "value")
    _WORDS: ClassVar[dict[str, bool]] = {"true": True, "false": False, "on": True, "off": False, "yes": True, "no": False}

    def __init__(self, value: bool | str | Flag, source: str = "") -> None:
        if isinstance(value, str) and value.strip().lower() in self._WORDS:
            value = self._WORDS[value.strip().lower()]
        if not isinstance(value, (bool, Flag)):
            raise ConfigError(f"{_shorten(value)} is neither true nor false", "true or false")
        self.value = bool(value)
        self.source = source or getattr(value, "source", "")

    def __bool__(self) -> bool:
        return self.value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, (bool, Flag)) and bool(other) == self.value

    def __hash__(self) -> int:
        return hash(self.value)

    def __str__(self) -> str:
        return "true" if self.value else "false"

    __repr__ = __str__


class Name(str):
    """A name out of a list: a protocol, a DRAM standard, a replacement policy."""

    source: str

    def __new__(cls, value: str, source: str = "") -> Name:
        if not isinstance(value, str) or not cls._fits(value):
            raise ConfigError(f"{_shorten(value)} is not a name", cls._wanted)
        name = super().__new__(cls, value)
        name.source = source or getattr(value, "source", "")
        return name

    _wanted: ClassVar[str] = "letters, digits and _ - . +"

    @classmethod
    def _fits(cls, text: str) -> bool:
        return re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_.+-]{0,99}", text) is not None


class ProtocolName(Name):
    """A protocol of the project by name, or one of the user's by its file, seen from where the command runs."""

    _wanted = "a protocol's name, or the path of a file that ends in .slicc"

    @classmethod
    def _fits(cls, text: str) -> bool:
        return super()._fits(text) or text.endswith(".slicc") and text.isprintable() and len(text) < 4096


LEAVES = (Quantity, Count, Flag, Name)
