# SPDX-License-Identifier: BSD-3-Clause
"""The rings through which drivers and virtio devices exchange buffers (src/dev/virtio/virtqueue.hh). The kernel's description of their
pages says nothing; the devices know where they are."""

from bisect import bisect_right
from collections.abc import Sequence

DEVICES = {"nic": "network card", "entropy": "random number generator"}
RingArea = tuple[str, int, str, int, int]  # device, queue, part, physical address, bytes


class Rings:
    def __init__(self, areas: Sequence[RingArea] = ()) -> None:
        self._areas = sorted(areas, key=lambda area: area[3])
        self._starts = [area[3] for area in self._areas]

    def at(self, physical: int) -> tuple[str, str, str, str] | None:
        """Name, kind, object and field of a byte of a ring."""
        n = bisect_right(self._starts, physical) - 1
        if n < 0:
            return None
        device, queue, part, first, size = self._areas[n]
        if physical >= first + size:
            return None
        return f"ring of the {DEVICES.get(device, device)}", "device ring", f"virtqueue {queue}", part
