# SPDX-License-Identifier: BSD-3-Clause
"""`moscope.trace`: a few scripted accesses with every message and transition, as tables and as a diagram."""

import os
import reprlib
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Union

from moscope.api import html
from moscope.api.machine import AnyMachine, Machine, machine_of
from moscope.api.progress import call
from moscope.api.values import place, text

if TYPE_CHECKING:
    import pyarrow

ACCESSES = {"id": "int", "step": "int", "text": "string", "core": "int", "op": "string", "line": "string", "address": "string",
            "home": "int", "issued_fs": "int", "done_fs": "int", "latency_fs": "int", "latency_cycles": "float", "supplier": "string",
            "hops": "int", "probes": "int", "value": "int"}
SEGMENTS = {"access": "int", "segment": "string", "fs": "int", "cycles": "float"}
MESSAGES = {"id": "int", "access": "int", "cause": "int", "type": "string", "address": "string", "from": "string", "to": "string",
            "network": "bool", "vnet": "int", "data": "bool", "sent_fs": "int", "arrives_fs": "int"}
LINKS = {"message": "int", "access": "int", "from_chip": "int", "to_chip": "int", "depart_fs": "int", "arrive_fs": "int"}
TRANSITIONS = {"access": "int", "at_fs": "int", "controller": "string", "machine": "string", "address": "string", "state": "string",
               "event": "string", "next": "string"}
SHORT = reprlib.Repr()
SHORT.maxstring = 100


@dataclass(frozen=True, repr=False)
class Trace:
    """What a script of accesses did. Times are femtoseconds of simulated time.

    `accesses`: a row per access, with its latency, who supplied the line (`supplier`), the links that were crossed (`hops`), the
    number of `probes` and the `value` read. `segments`: the latency of each access by where it was spent; `fs` adds up to
    `latency_fs`. `messages`: a row per message and receiver. `links`: a row per link that a message crossed. `transitions`: a
    row per transition of a controller. `access` is the `id` of the access that caused a row. `document`: the JSON object of
    `moscope trace --json`.
    """

    machine: Machine
    document: dict[str, Any]

    def __repr__(self) -> str:
        return f"Trace({self.machine}, {SHORT.repr(self.document['script'])}, seed={self.document['seed']})"

    @property
    def accesses(self) -> "pyarrow.Table":
        from moscope.api.tables import table

        return table(ACCESSES, [{**a, "issued_fs": a["issued"], "done_fs": a["done"]} for a in self.document["accesses"]])

    @property
    def segments(self) -> "pyarrow.Table":
        from moscope.api.tables import table

        return table(SEGMENTS, [{"access": a["id"], "segment": s["name"], "fs": s["fs"], "cycles": s["cycles"]}
                                for a in self.document["accesses"] for s in a["segments"]])

    @property
    def messages(self) -> "pyarrow.Table":
        from moscope.api.tables import table

        return table(MESSAGES, self._deliveries())

    def _deliveries(self) -> Iterator[dict[str, Any]]:
        for message in self.document["messages"]:
            for delivery in message["deliveries"] or [{"to": None, "at": None}]:
                yield {**message, "sent_fs": message["sent"], "to": delivery["to"], "arrives_fs": delivery["at"]}

    @property
    def links(self) -> "pyarrow.Table":
        from moscope.api.tables import table

        return table(LINKS, [{"message": m["id"], "access": m["access"], "from_chip": hop["from"], "to_chip": hop["to"],
                              "depart_fs": hop["depart"], "arrive_fs": hop["arrive"]}
                             for m in self.document["messages"] for hop in m["hops"]])

    @property
    def transitions(self) -> "pyarrow.Table":
        from moscope.api.tables import table

        return table(TRANSITIONS, [{**t, "at_fs": t["at"]} for t in self.document["transitions"]])

    def svg(self) -> str:
        """The sequence diagram."""
        from moscope.traces import diagram, draw

        return draw.to_svg(diagram.draw(self.document))

    def save(self, folder: Union[str, "os.PathLike[str]"]) -> None:
        """Writes `trace.json`, `trace.svg` and `trace.png`, as `--out` does; a PNG that would be too large to be read is left out, with
        a warning. Raises UserError if the folder cannot be written."""
        from moscope.traces import files

        if remark := files.write_folder(Path(place("folder", folder) or ""), self.document):
            warnings.warn(remark, stacklevel=2)

    def _repr_html_(self) -> str:
        from moscope.traces.text import not_done, supplier_text

        rows = [[a["text"], a["latency_cycles"], not_done(a) if a["done"] is None else supplier_text(self.document, a), a["hops"]]
                for a in self.document["accesses"]]
        title = f"{self.document['machine']}, {self.document['protocol']}"
        return html.table(title, ["access", "core cycles", "supplied by", "link crossings"], rows) + self.svg()


def trace(script: str, machine: AnyMachine | None = None, *, seed: int | None = None) -> Trace:
    """Runs a script of accesses on an idle machine: `trace("c0 ld A@n1; c6 st A@n1")`. Each access is `cCORE OP ADDR`. OP is ld,
    st, if, rmw, flush, nt or ldu; ADDR is a number or LETTER@nNODE, a line whose home is that node. `;` waits for the previous
    access, `|` starts at the same time (docs/scripts.md). `script` may also be the name of a script file (`.toml`), such as a
    counterexample. `machine` and `seed` default to those of the file, or without a file to opteron48 and 1. Takes less than a second.

    Raises UserError for a script or a machine that is not accepted, ProtocolError where its coherence protocol breaks. For a file with
    `checked = true`, violations and a protocol error do not raise; the document has them as `violations` and `protocol_error`.
    """
    from moscope.stepping import options
    from moscope.stepping.subject import prepared
    from moscope.traces.document import run_script

    chosen = machine_of("opteron48" if machine is None else machine)
    given = [name for name, value in (("machine", machine), ("seed", seed)) if value is not None]
    asked = replace(call(chosen, 1 if seed is None else seed, False), given=frozenset(given))
    spec, file = options.chosen(asked, text("script", script) or "", None, None)
    subject, steps = prepared(spec)
    changes = {key.strip(): value.strip() for key, _, value in (change.partition("=") for change in spec.all_sets)}
    return Trace(Machine(spec.machine, changes) if file else chosen, run_script(subject, steps, spec.script, spec.checked))
