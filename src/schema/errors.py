# SPDX-License-Identifier: BSD-3-Clause
"""Errors of a machine description, before it is known which file they belong to.

A `ConfigError` says what is wrong and what was expected; the loader adds the file (and the line) and
hands it on as the `UserError` that the command line prints.
"""

from __future__ import annotations

from collections.abc import Iterable

from moscope.errors import UserError, nearest

UNPLACED = "machine description"  # where an error is as long as no place is known


class ConfigError(UserError):
    """A value of a machine description that cannot be: `what` is wrong, `right` was expected."""

    def __init__(self, what: str, right: str, where: str = UNPLACED) -> None:
        # One line, whatever a name in it may contain.
        self.what, self.right, self.where = (" ".join(text.split()) for text in (what, right, where))
        super().__init__(f"{self.where}: {self.what}: expected {self.right}")

    def at(self, where: str) -> ConfigError:
        """The same error, said to be in `where`."""
        return ConfigError(self.what, self.right, where)

    def __reduce__(self) -> tuple[type, tuple[str, str, str]]:
        return (ConfigError, (self.what, self.right, self.where))


def suggest(name: str, known: Iterable[str]) -> str:
    """The known names nearest to one that is not known, or all that are known: what follows `expected`."""
    names = sorted(set(known))
    close = nearest(name, names)
    if not close:
        # The last part of a dotted path is what people remember.
        tail = name.rsplit(".", 1)[-1]
        close = [n for n in names if n.rsplit(".", 1)[-1] == tail][:3]
    if close:
        return "a known name, such as " + " or ".join(close)
    if not names:
        return "none, as there are none"
    shown = names if len(names) <= 16 else [*names[:16], "..."]
    return "one of " + ", ".join(shown)
