# SPDX-License-Identifier: BSD-3-Clause
"""`moscope protocol build`: compiles a protocol from its .slicc file into libraries that every command accepts."""

import json
from typing import Annotated

import typer

from moscope import buildproto
from moscope.cli import SIMULATED, Shared, command


@command(unused=SIMULATED)
def build(shared: Shared,
          protocol: Annotated[str, typer.Argument(metavar="NAME|FILE.slicc", help="The protocol to build.")],
          strict: Annotated[bool, typer.Option("--strict",
                                               help="Treat warnings such as missing transitions, unreachable states and unused actions "
                                                    "as errors.")] = False) -> None:
    """Build a protocol and print its folder and warnings. Builds are cached by content."""
    from moscope.config import check_roles

    made = buildproto.ensure_protocol(protocol, report=shared.say, strict=strict)
    check_roles(json.loads(made.interface.read_text(encoding="utf-8")))  # before the compilation, which takes long
    shared.result({"schema": "moscope.protocol.build/1", "name": made.name, "interface": str(made.interface),
                   "timing": str(made.timing), "checking": str(made.checking()), "warnings": made.warnings})
    if not shared.json:
        print(f"{made.name}: {made.timing.parent}")
