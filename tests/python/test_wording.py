# SPDX-License-Identifier: BSD-3-Clause
"""Numbers with their noun, in the singular or the plural."""

import pytest

from moscope.wording import number


@pytest.mark.parametrize("count, said", [(0, "0 cores"), (1, "1 core"), (48, "48 cores"), (1200, "1,200 cores")])
def test_one_is_no_plural(count: int, said: str) -> None:
    assert number(count, "core") == said
