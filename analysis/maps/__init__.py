# SPDX-License-Identifier: BSD-3-Clause
"""The map of a line: which of its bytes are waited for and written, by which code and from which cores, and what follows from it."""

from analysis.maps.line_map import Area, LineMap, maps_of

__all__ = ["Area", "LineMap", "maps_of"]
