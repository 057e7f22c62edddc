# SPDX-License-Identifier: BSD-3-Clause
"""One file per topology; each registers itself with `moscope.config.topology.topology`."""
