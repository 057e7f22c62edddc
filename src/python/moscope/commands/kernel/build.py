# SPDX-License-Identifier: BSD-3-Clause
"""`moscope kernel build`: builds the project's kernel and prints the path of the image."""

from pathlib import Path
from typing import Annotated

import typer

from moscope.cli import MOST_JOBS, SIMULATED, Shared, command


@command(unused=SIMULATED)
def build(shared: Shared,
          source: Annotated[Path | None, typer.Option(metavar="DIR",
                                                      help="6.1.y source tree to copy and build instead of Debian's.")] = None,
          variant: Annotated[str, typer.Option(metavar="NAME",
                                               help="Variant: kernels/config/NAME.config is merged into the common configuration.")] = "",
          jobs: Annotated[int | None, typer.Option("--jobs", "-j", metavar="N", min=1, max=MOST_JOBS,
                                                   help="Number of parallel compile jobs.")] = None) -> None:
    """Build the project's kernel, or find it in the cache.

    --kernel stock, pk and upstream use the ordinary build of Debian's source,
    and --kernel pk@NAME the variant NAME. Boot a build of --source by its file,
    with `boot --kernel FILE --append moscope.fix=SETTING`.
    """
    from moscope.guest import kernel_build

    built = kernel_build.build(shared.say, source, jobs, variant)
    shared.result({"schema": "moscope.kernel.build/1", "key": built.key, "image": str(built.image),
                   "source": built.document["source"], "sha256": built.document["sha256"], "variant": variant})
    if not shared.json:
        print(built.image)
