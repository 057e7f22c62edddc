# SPDX-License-Identifier: BSD-3-Clause
"""Workloads on the host and in a guest of four cores."""

import json
import subprocess
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from moscope import buildproto, workloads
from moscope.config import Machine, elaborate, load_machine
from moscope.config.machine import replace
from moscope.guest import initramfs, kernel, packages
from moscope.schema.units import Size
from moscope.workloads import build

HOST_SECONDS = 300


@pytest.fixture
def on_the_host() -> Callable[..., tuple[int, workloads.Results]]:
    """Runs a family's program; exit status and results."""

    def run(family: str, *arguments: str) -> tuple[int, workloads.Results]:
        got = subprocess.run([build.program(family), *arguments], capture_output=True, text=True, timeout=HOST_SECONDS,
                             check=False)
        return got.returncode, workloads.Results.of(got.stdout, family)

    return run


class Guest:
    """A booted machine of few cores at its shell's prompt, driven in steps."""

    def __init__(self, system: Any) -> None:
        self.system = system
        self.console = ""

    def wait_for(self, *details: str, seconds: float = 300) -> str:
        """Goes on to one of these markers; what came."""
        end = time.monotonic() + seconds
        while True:
            got = self.system.step(500)
            self.console += self.system.console_output().decode(errors="replace")
            if got["state"] == "marker" and got["detail"] in details:
                return str(got["detail"])
            assert got["state"] in ("running", "marker"), (got, self.console[-2000:])
            assert time.monotonic() < end, self.console[-2000:]

    def type(self, line: str) -> None:
        self.console = ""
        self.system.console_input(line.encode() + b"\n")

    def operations(self) -> int:
        return int(self.system.stats()["operations"])


@pytest.fixture(scope="session")
def booted(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Guest]:
    """Guests at the prompt, of four cores or as many as are asked for, each from the checkpoint of one boot."""
    chosen = [packages.cache() / "chosen" / f"{name}.json" for name in (kernel.CLOUD_KERNEL, initramfs.BUSYBOX_PACKAGE)]
    if not all(c.is_file() for c in chosen) and not request.config.getoption("--long"):
        pytest.skip("the distribution's kernel is not in the cache: `moscope boot` or --long fetches it")
    from moscope import _engine
    from moscope.boot import plan

    @cache
    def machine(sets: tuple[str, ...]) -> Machine:
        described: Machine = replace(load_machine("opteron48", sets), memory_per_node=Size("256MiB", "test")).validate()
        return described

    distro = kernel.find("distro", print)
    built = initramfs.build(distro, print, extra=workloads.programs({w.family for w in workloads.every() if not w.launcher}))
    folder = tmp_path_factory.mktemp("guest")

    @cache
    def prompt(cores: int, sets: tuple[str, ...]) -> tuple[dict[str, Any], Path]:
        config = {**plan.platform(machine(sets)), "cores": cores, "seed": 1, "restore": False, "append": plan.COMMAND_LINE,
                  "info": {}, "kernel": str(distro.image), "initrd": str(built.path), "disk": "", "disk_read_only": False,
                  "markers": [initramfs.PROMPT]}
        first = Guest(_engine.System(json.dumps(config)))
        first.wait_for(initramfs.PROMPT)
        checkpoint = folder / f"prompt-{cores}-{len(list(folder.iterdir()))}.ckpt"
        first.system.save(str(checkpoint))
        return config, checkpoint

    def again(detailed: bool = False, cores: int = 4, sets: tuple[str, ...] = (), timing: tuple[str, ...] = ()) -> Guest:
        """`sets` are of the machine that boots, `timing` more of the one whose times detailed mode has."""
        config, checkpoint = prompt(cores, sets)
        restored = config | {"restore": True, "kernel": "", "initrd": ""}
        if detailed:
            timed = machine((*sets, *timing))
            protocol = buildproto.ensure_protocol(str(timed.protocol))
            restored["detailed"] = {"machine": elaborate(timed, json.loads(protocol.interface.read_text())),
                                    "library": str(protocol.timing)}
        system = _engine.System(json.dumps(restored))
        system.restore(str(checkpoint))
        return Guest(system)

    return again


@pytest.fixture
def sources(root: Path) -> Path:
    return root / "workloads"
