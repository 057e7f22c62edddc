# SPDX-License-Identifier: BSD-3-Clause
"""The C++ headers of the descriptions: what the build writes into build/VARIANT/generated/schema."""

from __future__ import annotations

from moscope.schema import card, counters, dram, enumerations, links, nic, pipeline, prefetch, records, stacks
from moscope.schema.emit import cpp


def headers() -> dict[str, str]:
    """File name and text of each."""
    return {
        "enumerations.hh": cpp.header("enumerations", "values that are numbers in the engine and names in files.",
                                      [e for e in enumerations.DESCRIPTIONS if e.engine]),
        "records.hh": cpp.header("records", "rows that the engine writes as they lie in memory; little-endian.", records.DESCRIPTIONS,
                                 ["schema/enumerations.hh"]),
        "pipeline.hh": cpp.header("pipeline", "a core in detailed mode.", pipeline.DESCRIPTIONS, ["base/types.hh"]),
        "dram.hh": cpp.header("dram", "one node's DRAM.", dram.DESCRIPTIONS, ["base/types.hh"]),
        "links.hh": cpp.header("links", "links between routers.", links.ENGINE, ["base/types.hh"]),
        "stacks.hh": cpp.header("stacks", "samples of stacks; little-endian.", stacks.DESCRIPTIONS),
        "nic.hh": cpp.header("nic", "a network card.", nic.DESCRIPTIONS, ["base/types.hh"]),
        "card.hh": cpp.header("card", "what a network card and its link count.", card.DESCRIPTIONS),
        "prefetch.hh": cpp.header("prefetch", "hardware prefetchers.", prefetch.DESCRIPTIONS, ["base/types.hh"]),
        "counters.hh": cpp.header("counters", "what the machine counts; windows are differences of two snapshots.", counters.DESCRIPTIONS),
    }
