# SPDX-License-Identifier: BSD-3-Clause
"""A service of the distribution as a workload. A launcher (workloads/launcher) in the guest starts the service, starts the load
generators at the other end of the network card (docs/ethernet.md), and reads their counts. The clients count the operations."""

import shlex
from collections.abc import Callable

from moscope.errors import UserError

from .registry import THIRD_OF_TICK, Workload

LAUNCHER = "launcher"


def service(name: str, summary: str, operation: str, *, packages: tuple[str, ...], port: int, each: str, load: Callable[[int], str],
            steering: str = "rss", image: str = "", prepare: str = "", one_process: bool = False,
            warmup: str | Callable[[int], str] = "300us",
            window: str | Callable[[int], str] = THIRD_OF_TICK,
            short_window: str | Callable[[int], str] | None = None, kernels: str = "distro", memory_per_node: str = "512MiB",
            most_cores: int | None = None) -> Workload:
    """`packages` are Debian's, installed into the root image; `image` names a shell script of the folder that runs in the image's
    tree while the image is made, once, on this system. `each` is the shell command of one process: there is one for each core,
    pinned to it, or with `one_process` only one. In it and in `prepare`, which runs first, %c is the core, %p its port (`port` and
    those after it), %n the number of cores. The service is ready when it accepts connections on its ports. `load` gives the driver
    of the clients and its settings for a number of cores; `steering` is the card's policy unless the machine file or
    `--set nic.steering` gives one."""
    for key, text in (("each", each), ("prepare", prepare)):
        if not (text.isascii() and (text.isprintable() or not text)):
            raise UserError(f"{name}: {key}: {text!r}: expected a line of printable ASCII characters")

    def arguments(cores: int) -> str:
        given = {"cores": str(cores), "port": str(port), "prepare": prepare, "each": each, "load": load(cores),
                 "processes": "one" if one_process else "cores"}
        return " ".join(f"--{key} {shlex.quote(value)}" for key, value in given.items() if value)

    return Workload(name, summary, operation, arguments, warmup=warmup, window=window, short_window=short_window,
                    kernels=kernels, memory_per_node=memory_per_node,
                    most_cores=most_cores, processes=True, packages=packages, image=image, steering=steering,
                    first_port=port, launcher=LAUNCHER)
