# SPDX-License-Identifier: BSD-3-Clause
"""`moscope kernel build`: makes the project's kernel and says where it lies."""

from pathlib import Path
from typing import Annotated

import typer

from moscope.cli import Shared, command


@command
def build(shared: Shared,
          source: Annotated[Path | None, typer.Option(metavar="DIR", help="Build from this 6.1.y tree (it is copied) instead of "
                                                      "Debian's source.")] = None,
          variant: Annotated[str, typer.Option(metavar="NAME", help="Build with kernels/config/NAME.config over the common "
                                               "configuration.")] = "",
          jobs: Annotated[int | None, typer.Option("--jobs", "-j", metavar="N", min=1, help="Compile so many files at once.")] = None) -> None:
    """Build the project's kernel, or find it in the cache.

    --kernel stock, pk and upstream take the ordinary build of Debian's source; one of --source or --variant is booted by
    its file, with --append moscope.fix=SETTING.
    """
    from moscope.guest import kernel_build

    built = kernel_build.build(shared.say, source, jobs, variant)
    shared.result({"schema": "moscope.kernel.build/1", "key": built.key, "image": str(built.image),
                   "source": built.document["source"], "sha256": built.document["sha256"], "variant": variant})
    if not shared.json:
        print(built.image)
