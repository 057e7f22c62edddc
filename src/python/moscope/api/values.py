# SPDX-License-Identifier: BSD-3-Clause
"""Checks of values that callers give: Python's or numpy's numbers, and single texts where several are expected. A value of
another kind is a UserError before anything else uses it."""

import operator
import os
from collections.abc import Iterable, Mapping
from typing import Any

from moscope.errors import UserError


def whole(option: str, value: Any) -> int:
    """A whole number; true and false, which Python takes for 1 and 0, are none."""
    try:
        if not isinstance(value, bool):
            return operator.index(value)
    except TypeError:
        pass
    raise UserError(f"{option}: {value}: expected a whole number")


def switch(option: str, value: Any) -> bool:
    """True or false."""
    plain = of_python(value)
    if isinstance(plain, bool):
        return plain
    raise UserError(f"{option}: {value!s:.60}: expected True or False")


def text(option: str, value: Any) -> str | None:
    """A text, or none."""
    if value is None or isinstance(value, str):
        return value
    raise UserError(f"{option}: {value}: expected a string")


def place(option: str, value: Any, expected: str = "a path") -> str | None:
    """The path of a file or folder, or none."""
    if value is None:
        return None
    if not isinstance(value, str | os.PathLike) or not isinstance(path := os.fspath(value), str):
        raise UserError(f"{option}: {value!s}: expected {expected}")
    if not _is_path(path):
        raise UserError(f"{option}: {path!r}: expected {expected}")
    return path


def _is_path(text: str) -> bool:
    """Whether a file could have this path; characters are encoded as the file system's names are."""
    try:
        return b"\0" not in os.fsencode(text)
    except UnicodeEncodeError:
        return False


def several(option: str, values: Iterable[str]) -> tuple[str, ...]:
    """Several texts. A single text is one value, although Python would iterate over its characters."""
    found = (values,) if isinstance(values, str) or not isinstance(values, Iterable) else tuple(values)
    for value in found:
        if not isinstance(value, str):
            raise UserError(f"{option}: {value}: expected a string or several")
    return found


def mapping(option: str, values: Any) -> dict[str, Any]:
    """Values by name; none at all are an empty mapping."""
    if values is None:
        return {}
    if isinstance(values, Mapping) and all(isinstance(key, str) for key in values):
        return dict(values)
    raise UserError(f"{option}: {values!s:.60}: expected a mapping from names to values")


def each(option: str, values: Any, of: str) -> list[Any]:
    """The members of a list, a tuple or the like; `of`: what they are, plural."""
    if isinstance(values, Iterable) and not isinstance(values, str | bytes | Mapping):
        return list(values)
    raise UserError(f"{option}: {values!s:.60}: expected a list of {of}")


def of_python(value: Any) -> Any:
    """A number of numpy as Python's."""
    return value.item() if hasattr(value, "dtype") and getattr(value, "ndim", 1) == 0 else value
