# SPDX-License-Identifier: BSD-3-Clause
"""Words for numbers of things, as people say them, digits of numbers, and command lines, as people write them."""

import math
import re
import shlex
from collections.abc import Iterable


def number(count: int, what: str) -> str:
    """`1 core`, `48 cores`."""
    return f"{count:,} {what}{'' if count == 1 else 's'}"


def decimals(value: float, digits: int = 3) -> int:
    """The decimals that show this many significant digits: 1 for 51.2, 4 for 0.0107."""
    return max(0, digits - 1 - math.floor(math.log10(abs(value)))) if value else digits - 1


def percent(share: float, digits: int = 0) -> str:
    """`55 %`."""
    return f"{100 * share:.{digits}f} %"


def significant(value: float, digits: int) -> str:
    """The value with so many significant digits, zeros at the end included, and with all digits in front of the decimal point."""
    if not value:
        return "0"
    return f"{value:,.0f}" if abs(value) >= 10 ** (digits - 1) else f"{value:#,.{digits}g}".removesuffix(".")


def command_line(words: Iterable[str]) -> str:
    """The words as a shell reads them. A word with single quotes is in double quotes, unless a shell would replace its `!` there."""
    return " ".join('"' + re.sub(r'([\\"$`])', r"\\\1", word) + '"' if "'" in word and "!" not in word else shlex.quote(word)
                    for word in words)
