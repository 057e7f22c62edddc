# SPDX-License-Identifier: BSD-3-Clause
"""`moscope kernel config`: the configuration of the project's kernel."""

from pathlib import Path
from typing import Annotated

import typer

from moscope.cli import SIMULATED, Shared, command


@command(unused=SIMULATED)
def config(shared: Shared,
           source: Annotated[Path | None, typer.Option(metavar="DIR",
                                                       help="6.1.y source tree to use instead of Debian's source.")] = None,
           variant: Annotated[str, typer.Option(metavar="NAME",
                                                help="Variant: kernels/config/NAME.config is merged in.")] = "") -> None:
    """Print the complete kernel configuration, derived from kernels/config/moscope.config."""
    from moscope.guest import kernel_build

    text = kernel_build.configured(shared.say, source, variant)
    options = dict(line.split("=", 1) for line in text.splitlines() if line.startswith("CONFIG_"))
    shared.result({"schema": "moscope.kernel.config/1", "options": options})
    if not shared.json:
        print(text, end="")
