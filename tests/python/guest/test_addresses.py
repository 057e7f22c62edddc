# SPDX-License-Identifier: BSD-3-Clause
"""The limits in the guest's address space."""

import re

from moscope import paths
from moscope.guest import addresses

LIMITS = {name: value for name, value in vars(addresses).items() if name.isupper()}
ASSIGNED = re.compile(rf"^(?:\w+, )*({'|'.join(LIMITS)})\b(?:, \w+)* = ", re.MULTILINE)


def test_each_limit_of_the_address_space_is_written_once() -> None:
    files = [*paths.root().glob("src/python/moscope/**/*.py"), *paths.root().glob("analysis/**/*.py")]
    own = paths.root() / "src/python/moscope/guest/addresses.py"
    assert own in files
    for file in files:
        text = file.read_text(encoding="utf-8")
        assert file == own or not ASSIGNED.search(text), file
        assert not any(str(value) in text for value in LIMITS.values()), file


def test_no_address_of_a_program_is_one_of_the_kernel() -> None:
    assert addresses.USER_TOP < addresses.KERNEL_HALF < addresses.IMAGE_MAP
