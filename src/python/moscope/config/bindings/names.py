# SPDX-License-Identifier: BSD-3-Clause
"""How many controllers gem5's machine types have, and what they are, where a protocol does not say it."""

BY_NAME = {"L2Cache": ("chip", "cache"), "L3Cache": ("chip", "cache"), "Directory": ("node", "home"), "DMA": ("node", "dma")}
"""(per, role); all other types are caches of a core."""
CORES_CACHE = ("core", "cache")
