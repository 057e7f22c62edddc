# SPDX-License-Identifier: BSD-3-Clause
"""`moscope protocol list`: the project's protocols with their machines, from their interface files."""

import json
from typing import Any

from moscope import buildproto
from moscope.cli import SIMULATED, Shared, command


@command(unused=SIMULATED)
def list_protocols(shared: Shared) -> None:
    """List the protocols, with the number of states, events and transitions of each machine."""
    rows = [_describe(name) for name in buildproto.known_protocols()]
    shared.result({"schema": "moscope.protocols/1", "protocols": rows})
    if shared.json:
        return
    for row in rows:
        print(f"{row['name']}  ({row['file']})")
        for m in row["machines"]:
            print(f"  {m['type']:<10} {m['states']:>4} states {m['events']:>4} events {m['transitions']:>5} transitions")


def _describe(name: str) -> dict[str, Any]:
    interface = json.loads(buildproto.ensure_protocol(name).interface.read_text(encoding="utf-8"))
    machines = [{"type": m["type"], **{part: len(m[part]) for part in ("states", "events", "transitions")}}
                for m in interface["machines"]]
    return {"name": name, "file": f"{buildproto.PROTOCOLS}/{name}.slicc", "machines": machines}
