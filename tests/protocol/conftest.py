# SPDX-License-Identifier: BSD-3-Clause
"""What the tests of protocols share: the machines with protocols on them, and this folder's own modules."""

import shutil
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from moscope import buildproto, paths

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


@pytest.fixture(scope="session")
def mutant(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """`mutant(mutation)`: the checking library of a mutated protocol, built once."""

    @cache
    def built(mutation: object) -> Path:
        folder = tmp_path_factory.mktemp("mutant")
        name, apply = mutation.protocol, mutation.apply  # type: ignore[attr-defined]  # a mutations.Mutation
        for path in buildproto.known_protocols()[name].parent.glob(f"{name}*"):
            shutil.copy(path, folder)
        apply(folder)
        generated, library = folder / "generated", folder / f"{name}.check.so"
        buildproto.generate(folder / f"{name}.slicc", generated)
        buildproto.compile_protocol(generated, library, True, paths.variant(), 2, lambda text: None)
        return library

    return built
