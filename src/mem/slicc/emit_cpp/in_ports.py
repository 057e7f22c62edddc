# SPDX-License-Identifier: BSD-3-Clause
"""The in_ports in a controller's polling code, in the order in which it asks them."""
from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .machine import MachineEmitter


def in_ports(to: MachineEmitter) -> None:
    """Writes them. Where in_ports take different types of messages from one buffer, one that meets another type is left at its peek,
    and the next one is asked, as in gem5; it is an error if none of them takes the first message."""
    out, ports, shared = to.out, to.machine.in_ports, shared_buffers(to)
    for buffer in shared:
        out(f"int left_{buffer} = 0;")
    if ports:
        out("int done = 0;\nagain:")
    for buffer in shared:
        out(f"left_{buffer} = 0;")
    for port in ports:
        out(f"// in_port {port.name}, rank {port.rank}")
        code = to.code()
        buffer = code.buffer(port.buffer)
        code.shared = frozenset({buffer} & shared.keys())
        with out.block("try" if buffer in shared else ""):
            to.says_where("in_port", port)
            code.block(port.body)
        if buffer in shared:
            out(f"catch (const OfAnotherType &) {{ ++left_{buffer}; }}")
    for buffer, count in shared.items():
        out(f"taken_by_one({buffer}, left_{buffer}, {count});")


def shared_buffers(to: MachineEmitter) -> dict[str, int]:
    """Buffers whose in_ports take messages of different types, and how many in_ports each has; of protocols from outside."""
    types: dict[str, list[str]] = {}
    for port in to.machine.in_ports if to.program.foreign else []:
        types.setdefault(to.code().buffer(port.buffer), []).append(port.message.name if port.message else "")
    return {buffer: len(found) for buffer, found in types.items() if len(set(found)) > 1}
