# SPDX-License-Identifier: BSD-3-Clause
"""What the tests of protocols share: the machines with protocols on them, and this folder's own modules."""

import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

Prepared = Callable[..., object]


@pytest.fixture(scope="session")
def subject() -> Prepared:
    """`subject("MSI", 48, caches="tiny", sets=(..))`: a protocol on the 48-core machine or a part of it."""
    from moscope.protocol import check as protocol_check

    @cache
    def prepared(protocol: str, cores: int = 48, *, caches: str = "tiny", sets: tuple[str, ...] = (),
                 network: str = "hypertransport", jitter: str | None = protocol_check.JITTER) -> object:
        return protocol_check.prepare(protocol, "opteron48", list(sets), cores=cores, caches=caches, network=network,
                                      jitter=jitter)

    return prepared
