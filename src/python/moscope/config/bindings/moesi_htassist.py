# SPDX-License-Identifier: BSD-3-Clause
"""MOESI_HTAssist: every latency of the protocol comes from the machine's `latencies`. The clock of a
controller is that of the matching latencies: core cycles in L1Cache, northbridge cycles elsewhere."""

from __future__ import annotations

from typing import Any

from ..machine import Machine
from . import binding


@binding("MOESI_HTAssist")
def moesi_htassist(machine: Machine) -> dict[str, Any]:
    t = machine.latencies
    return {
        "probe_filter_enabled": bool(machine.probe_filter.enabled),
        "cores_per_chip": int(machine.cores_per_chip),
        "line_bytes": machine.line.bytes,
        "L1Cache.l2_hit_latency": t.l2_hit.count,
        "L1Cache.l2_miss_latency": t.l2_miss.count,
        "L1Cache.done_latency": t.done.count,
        "L3Cache.l3_hit_latency": t.l3_hit.count,
        "L3Cache.l3_miss_latency": t.l3_miss.count,
        "L3Cache.core_tags_latency": t.core_tags.count,
        "L3Cache.probe_response_latency": t.probe_response.count,
        "Directory.home_latency": t.home.count,
        "Directory.probe_filter_latency": t.probe_filter.count,
        "Directory.to_memory_controller_latency": t.memory_controller.count,
        "DMA.request_latency": t.dma.count,
        # Of gem5's fixed list of request types, those that the protocol takes for accesses past the caches.
        "sequencer.nt_store_type": "COMMIT",
        "sequencer.uncached_load_type": "IO",
    }
