# SPDX-License-Identifier: BSD-3-Clause
"""Words for numbers of things, as people say them."""


def number(count: int, what: str) -> str:
    """`1 core`, `48 cores`."""
    return f"{count:,} {what}{'' if count == 1 else 's'}"
