# SPDX-License-Identifier: BSD-3-Clause
"""The number and the role of the controllers of gem5's machine types, for protocols that do not give them."""

BY_NAME = {"L2Cache": ("chip", "cache"), "L3Cache": ("chip", "cache"), "Directory": ("node", "home"), "DMA": ("node", "dma")}
"""(per, role); all other types are caches of a core."""
CORES_CACHE = ("core", "cache")
OF_ALL = ("number_of_TBEs", "recycle_latency", "transitions_per_cycle")
"""Plain parameters that every machine has without declaring them (OF_ALL of src/mem/slicc/roles.py)."""
