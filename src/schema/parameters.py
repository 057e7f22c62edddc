# SPDX-License-Identifier: BSD-3-Clause
"""Parameters of a machine: frozen dataclasses of quantities, each field with one sentence, its limits, and the source of its
default. `param` describes a field; `check_limits` is the one place that compares values with limits; `engine_name` and
`engine_value` say how the engine's JSON and its C++ struct call and count a value."""

from __future__ import annotations

import dataclasses
import functools
import sys
import typing
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, dataclass_transform

from moscope.schema.describe import BadDescription, check_sentence
from moscope.schema.errors import ConfigError, suggest
from moscope.schema.units import LEAVES, Count, Cycles, Flag, Frequency, Name, ProtocolName, Quantity, Size, Time, Width

# What a value's name ends in where it is a plain number, so that the name shows the unit.
SUFFIX: dict[type, str] = {Cycles: "_cycles", Time: "_fs", Size: "_bytes", Width: "_bits", Frequency: "_hz"}


@dataclasses.dataclass(frozen=True)
class About:
    """What a description says of a field beside its type and default. Limits are texts of the field's own unit; `choices`
    gives the names that a field may have, where these are known elsewhere."""

    sentence: str
    least: Any = None
    most: Any = None
    choices: Callable[[], Sequence[str]] | None = None


def param(sentence: str, default: Any = dataclasses.MISSING, *, least: Any = None, most: Any = None,
          choices: Callable[[], Sequence[str]] | None = None) -> Any:
    """A field of a description. The source of `default` is said in the quantity: Count(3, "AMD 40546")."""
    check_sentence("parameter", sentence)
    return dataclasses.field(default=default, metadata={"about": About(sentence, least, most, choices)})


class _Keyed(type):
    """Says of a call what Python would say as a TypeError in its own words."""

    def __call__(cls, *args: Any, **values: Any) -> Any:
        known = field_kinds(cls)
        for key in values:
            if key not in known:
                raise ConfigError(f"{cls.__name__}: unknown key {key!r}", suggest(key, known))
        given = {*list(known)[: len(args)], *values}
        wanted = [f.name for f in dataclasses.fields(cls)  # type: ignore[arg-type]
                  if f.default is dataclasses.MISSING and f.default_factory is dataclasses.MISSING and f.name not in given]
        if wanted:
            raise ConfigError(f"{cls.__name__}: no value for {', '.join(wanted)}", f"{wanted[0]}=..., see docs/machines.md")
        return super().__call__(*args, **values)


@dataclass_transform(frozen_default=True, field_specifiers=(param, dataclasses.field))
class Described(metaclass=_Keyed):
    """Base of the description's classes, each a frozen dataclass: turns texts into quantities as it is built."""

    units_in_names: ClassVar[bool] = True  # the engine's names of its fields end in their units

    def __init_subclass__(cls) -> None:
        try:
            dataclasses.dataclass(frozen=True)(cls)
        except TypeError as error:  # such as a field without a default after one with a default
            file = getattr(sys.modules.get(cls.__module__), "__file__", None) or cls.__module__
            raise BadDescription(f"{file}: {cls.__name__}: {error}: expected fields without a default above the others") from None

    def __post_init__(self) -> None:
        for name, kind in field_kinds(type(self)).items():
            object.__setattr__(self, name, coerce(kind, getattr(self, name), name))

    def __getstate__(self) -> dict[str, Any]:
        """Leaves out defaults, so that `is_given` knows them in another process, too: there the class has them."""
        return {name: value for name, value in vars(self).items() if value is not getattr(type(self), name, None)}


@functools.cache
def field_kinds(cls: type) -> dict[str, Any]:
    """Name and type of each field of a description class."""
    hints = typing.get_type_hints(cls)
    return {f.name: hints[f.name] for f in dataclasses.fields(cls)}


def is_given(part: Described, name: str) -> bool:
    """Whether a machine file or an option gave this value, even if it equals the default."""
    return getattr(part, name) is not getattr(type(part), name, None)


def abouts(cls: type) -> dict[str, About]:
    return {f.name: f.metadata["about"] for f in dataclasses.fields(cls) if "about" in f.metadata}


def coerce(kind: Any, value: Any, key: str, source: str = "") -> Any:
    """`value` as the field `key` of type `kind` wants it; a ConfigError names the key."""
    try:
        if hasattr(kind, "parse"):  # topologies and routings
            return kind.parse(value, source)
        if isinstance(kind, type) and issubclass(kind, LEAVES):
            if isinstance(value, LEAVES) and not isinstance(value, kind) and not (isinstance(value, Name) and issubclass(kind, Name)):
                # A Count is an int and a Name a str, but neither stands for a quantity with a unit.
                raise ConfigError(f"{value} is a {_kind_name(type(value))}", f"a {_kind_name(kind)}")
            return value if isinstance(value, kind) and not source else kind(value, source)
        if isinstance(kind, type) and issubclass(kind, Described):
            if not isinstance(value, kind):
                raise ConfigError(f"{value!r:.40} is not of type {kind.__name__}", f"{kind.__name__}({', '.join(field_kinds(kind))})")
            return value
        if typing.get_origin(kind) is Mapping or kind is Mapping:
            if not isinstance(value, Mapping) or not all(isinstance(k, str) for k in value):
                raise ConfigError(f"{value!r:.40} is not a dictionary", "a dictionary of names and values")
            return dict(value)
        if kind is str and not isinstance(value, str):
            raise ConfigError(f"{value!r:.40} is not a string", "a string in quotes")
        return value
    except ConfigError as error:
        if error.what.startswith(f"{key}:"):
            raise
        raise ConfigError(f"{key}: {error.what}", error.right) from None


def _kind_name(kind: type) -> str:
    if issubclass(kind, Quantity):
        return kind.kind
    return {Count: "count", Flag: "true or false", Name: "name", ProtocolName: "name"}[kind]


# --- limits ----------------------------------------------------------------------------------------


def check_limits(part: Described, prefix: str = "") -> None:
    """ConfigError for the first value, of this group or a nested one, that its description does not allow."""
    about = abouts(type(part))
    for name in field_kinds(type(part)):
        value = getattr(part, name)
        if isinstance(value, Described):
            check_limits(value, f"{prefix}{name}.")
        elif name in about and value is not None:
            _check(f"{prefix}{name}", value, about[name])


def _check(key: str, value: Any, about: About) -> None:
    if about.choices:
        if value not in about.choices():
            raise ConfigError(f"{key}: {value!r}", f"one of {limits(about)}")
        return
    least, most = (None if limit is None else type(value)(limit) for limit in (about.least, about.most))
    if (least is not None and value < least) or (most is not None and most < value):
        raise ConfigError(f"{key}: {value}", limits(about))


def limits(about: About) -> str:
    """Limits in words: `1 to 16`, `at most 1ms`, `1 or more`."""
    if about.choices:
        return ", ".join(about.choices())
    if about.least is None:
        return "" if about.most is None else f"at most {about.most}"
    return f"{about.least} or more" if about.most is None else f"{about.least} to {about.most}"


@dataclasses.dataclass(frozen=True)
class Group:
    """A described class under the name by which pages mark its table. With a namespace, it is also a C++ struct of the
    engine: its plain values, under the engine's names."""

    name: str
    parameters: type
    namespace: str = ""


# --- the engine's side -----------------------------------------------------------------------------


def engine_name(name: str, kind: type) -> str:
    """A field as the engine's JSON and C++ call it."""
    return name + SUFFIX.get(kind, "")


def engine_value(value: Any) -> Any:
    """A value as the engine counts it: femtoseconds, bytes, cycles, bits, hertz."""
    if isinstance(value, Quantity):
        if value.amount.denominator != 1:
            raise ConfigError(f"{value} is not a whole number of {value._base()}", "a value that the engine can count")
        return int(value.amount)
    if isinstance(value, Flag):
        return bool(value)
    return int(value) if isinstance(value, Count) else str(value)


def engine_fields(cls: type) -> Iterator[tuple[str, str, type, About]]:
    """Of each plain value: its name, the engine's name for it, its type and what is said of it."""
    about, in_names = abouts(cls), getattr(cls, "units_in_names", True)
    for name, kind in field_kinds(cls).items():
        if name in about and isinstance(kind, type) and issubclass(kind, LEAVES):
            yield name, engine_name(name, kind) if in_names else name, kind, about[name]


def engine_json(part: Described) -> dict[str, Any]:
    """A group of plain values as the engine reads it."""
    return {theirs: engine_value(getattr(part, name)) for name, theirs, _, _ in engine_fields(type(part))}
