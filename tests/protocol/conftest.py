# SPDX-License-Identifier: BSD-3-Clause
"""What the tests of protocols share: the machines with protocols on them, and this folder's own modules."""

import os
import shutil
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from moscope import bootstrap, buildproto, paths, toolchain

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
    """`mutant(mutation)`: the checking library of a mutated protocol, built once, also for all workers of pytest-xdist."""
    base = tmp_path_factory.getbasetemp()
    shared = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "mutants"

    @cache
    def built(mutation: object) -> Path:
        name = mutation.protocol  # type: ignore[attr-defined]  # a mutations.Mutation
        folder = shared / mutation.name  # type: ignore[attr-defined]
        library = folder / f"{name}.check.so"
        with bootstrap.locked(shared / f"{folder.name}.lock", bootstrap.Voice(quiet=True), "building a mutant"):
            if not library.exists():
                shutil.rmtree(folder, ignore_errors=True)
                folder.mkdir()
                for path in buildproto.known_protocols()[name].parent.glob(f"{name}*"):
                    shutil.copy(path, folder)
                mutation.apply(folder)  # type: ignore[attr-defined]
                generated = folder / "generated"
                buildproto.generate(folder / f"{name}.slicc", generated)
                buildproto.compile_protocol(generated, library, True, paths.variant(), 2, lambda text: None, toolchain.FAST_COMPILE)
        return library

    return built
