# SPDX-License-Identifier: BSD-3-Clause
"""A core in detailed mode, beside its caches. The time that each instruction takes is a table of the family's manual
(src/cpu/x86/timed/op_timing.cc)."""

from __future__ import annotations

from moscope.schema.parameters import Described, Group, param
from moscope.schema.units import Count, Cycles, Name, Time

MODELS = ("blocking", "out_of_order")


class Pipeline(Described):
    """A core in detailed mode. The defaults are those of family 10h."""

    issue_width: Count = param("operations issued per cycle", default=Count(3, "x: AMD 40546, three-way"), least=1, most=16)
    locked: Cycles = param("cycles of a locked operation that hits, its accesses included; if it misses, its wait for the line is added",
                           default=Cycles("12cycles", "assumed"), most="1000000cycles")
    store_buffer: Count = param("entries of the store buffer", default=Count(
        32, "assumed: most of the 44-entry load/store unit (x: AMD 40546, section A.5.4) hold loads"), least=1, most=256)
    l1d_tlb: Count = param("entries of the first-level data TLB, fully associative, replaced round-robin, for pages of all sizes",
                           default=Count(48, "x: AMD 40546, section A.10"), least=1, most=256)
    l2_tlb: Cycles = param("cycles that a miss in the first-level TLB adds; if the second level misses, too, a page walk follows",
                           default=Cycles("5cycles", "assumed"), most="1000000cycles")
    interrupt: Time = param("from an interrupt's arrival at the core until the core takes it", default=Time("60ns", "assumed"), most="1ms")


class Core(Described):
    """How a core in detailed mode overlaps its instructions. Only `out_of_order` uses the other values; the defaults are those of
    family 10h."""

    model: Name = param("`blocking`: instructions issue in order and one load is under way; `out_of_order`: independent loads overlap",
                        default=Name("out_of_order", "x: AMD 40546, reorder buffer"), choices=lambda: MODELS)
    window: Count = param("`out_of_order` only: operations between dispatch and retirement",
                          default=Count(72, "x: AMD 40546, reorder buffer"), least=4, most=256)
    mispredicted: Cycles = param(
        "`out_of_order` only: from the resolution of a mispredicted branch until the next operation is dispatched",
        default=Cycles("12cycles", "x: AMD 40546, 12 cycles and more"), most="1000cycles")


DESCRIPTIONS = (Group("PipelineParams", Pipeline, "moscope::x86"), Group("CoreParams", Core, "moscope::x86"))
