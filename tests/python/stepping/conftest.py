# SPDX-License-Identifier: BSD-3-Clause
"""A local server for the tests of a module."""

import threading
from collections.abc import Iterator

import pytest

from moscope.stepping import server
from moscope.stepping.history import run


@pytest.fixture(scope="module")
def address(request: pytest.FixtureRequest) -> Iterator[str]:
    """Where the history of the module's SPEC is served."""
    spec = request.module.SPEC
    made: list[str] = []
    there = threading.Event()

    def ready(where: str) -> None:
        made.append(where)
        there.set()

    threading.Thread(target=server.serve, args=(server.Session(run(spec), spec), 0, ready), daemon=True).start()
    assert there.wait(30)
    yield made[0]
