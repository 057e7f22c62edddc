# SPDX-License-Identifier: BSD-3-Clause
"""`moscope protocol table`: the transition tables of a protocol, as its SLICC text declares them."""

import json
from typing import Annotated, Any

import typer

from moscope import buildproto, jsonio
from moscope.cli import SIMULATED, Shared, command
from moscope.errors import UserError

ENDINGS = {"text": "txt", "markdown": "md", "html": "html"}


@command(fills_out=True, unused=SIMULATED)
def table(shared: Shared,
          protocol: Annotated[str, typer.Argument(metavar="NAME|FILE.slicc", help="Protocol to print.")],
          format: Annotated[str, typer.Option("--format", metavar="text|markdown|html", help="Output format.")] = "text",
          ) -> None:
    """Print the transition tables of a protocol: states by events, with actions and next states."""
    if format not in ENDINGS:
        raise UserError(f'--format: no format called "{format}": expected {", ".join(ENDINGS)}, or the option --json')
    slicc = buildproto.find_protocol(protocol)
    if shared.json and not shared.out:
        shared.result(_document(protocol))
        return
    text, warnings = buildproto.run_slicc(["--protocol", str(slicc), "--table", format])
    if warnings:
        shared.say(warnings)
    if shared.out:
        name = f"{slicc.stem}.{ENDINGS[format]}"
        with jsonio.atomic_dir(shared.out) as folder:
            (folder / name).write_text(text, encoding="utf-8")
        shared.say(f"wrote {shared.out / name}")
        if shared.json:
            shared.result(_document(protocol))
    else:
        print(text, end="" if text.endswith("\n") else "\n")


def _document(protocol: str) -> dict[str, Any]:
    """The tables for scripts."""
    interface = json.loads(buildproto.ensure_protocol(protocol).interface.read_text(encoding="utf-8"))
    keep = ("type", "desc", "states", "events", "actions", "transitions")
    return {"schema": "moscope.protocol.table/1", "protocol": interface["protocol"],
            "machines": [{key: m[key] for key in keep} for m in interface["machines"]]}
