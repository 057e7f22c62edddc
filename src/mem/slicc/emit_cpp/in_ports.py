# SPDX-License-Identifier: BSD-3-Clause
"""The in_ports in a controller's polling code, in the order in which it asks them."""
from __future__ import annotations

from typing import TYPE_CHECKING

from .. import ast
from .places import records_place
from .traits import acts_itself, has_effects

if TYPE_CHECKING:
    from .machine import MachineEmitter


def in_ports(to: MachineEmitter) -> None:
    """Writes the in_ports. Where in_ports take different types of messages from one buffer, an in_port whose peek meets another
    type gives up and the next one is polled, as in gem5. It is an error if none of them takes the first message."""
    out, ports, shared = to.out, to.machine.in_ports, shared_buffers(to)
    for buffer in shared:
        out(f"int left_{buffer}_ = 0;")
    if ports:
        out("int transitions_ = 0;\nagain:")
    for buffer in shared:
        out(f"left_{buffer}_ = 0;")
    for port in ports:
        out(f"// in_port {port.name}, rank {port.rank}")
        code = to.code()
        buffer = code.buffer(port.buffer)
        code.shared = frozenset({buffer} & shared.keys())
        with out.block("try" if buffer in shared else ""):
            if to.program.foreign and begins_with_message(port):
                code.opening = to.naming("in_port", port)
            else:
                to.says_where("in_port", port)
            code.is_cause = acts_itself(port.body)
            code.keeps_heads = not has_effects(port) and port.rsc_stall_handler is None
            if code.is_cause:  # until the in_port peeks at a message, what it does is for none
                out("no_cause();")
            code.block(port.body)
        if buffer in shared:
            out(f"catch (const OfAnotherType &) {{ ++left_{buffer}_; }}")
    for buffer, count in shared.items():
        out(f"taken_by_one({buffer}, left_{buffer}_, {count});")


def begins_with_message(port: ast.InPort) -> bool:
    """Whether an in_port does nothing unless a message is there, and asks for nothing else before."""
    match [s for s in port.body if not isinstance(s, (ast.DebugPrint, ast.Comment))]:
        case [ast.If(branches=[(ast.MethodCall(name="isReady", object=ast.Name(kind="in_port")), [_, *_])], otherwise=None) as only]:
            return not records_place(only)
    return False


def shared_buffers(to: MachineEmitter) -> dict[str, int]:
    """In protocols from outside: the buffers whose in_ports take different types of messages, with the number of in_ports of
    each."""
    ports: dict[str, list[ast.InPort]] = {}
    for port in to.machine.in_ports if to.program.foreign else []:
        ports.setdefault(to.code().buffer(port.buffer), []).append(port)
    return {buffer: len(found) for buffer, found in ports.items() if of_several_types(found)}


def of_several_types(ports: list[ast.InPort]) -> bool:
    """Whether the in_ports of one buffer take different types of messages; in_ports of timer tables take no messages."""
    return len({port.message.name for port in ports if port.message}) > 1
