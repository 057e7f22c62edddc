# SPDX-License-Identifier: BSD-3-Clause
"""`moscope protocol build`: a user's protocol, from its .slicc file to libraries that every command accepts."""

from typing import Annotated

import typer

from moscope import buildproto
from moscope.cli import Shared, command


@command
def build(shared: Shared,
          protocol: Annotated[str, typer.Argument(metavar="NAME|FILE.slicc", help="The protocol to build.")]) -> None:
    """Build a protocol; done once per content, so a second call only tells where it is."""
    made = buildproto.ensure_protocol(protocol, report=shared.say)
    if shared.json:
        shared.result({"schema": "moscope.protocol.build/1", "name": made.name, "interface": str(made.interface),
                       "timing": str(made.timing), "checking": str(made.checking)})
    else:
        print(f"{made.name}: {made.timing.parent}")
