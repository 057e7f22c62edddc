# SPDX-License-Identifier: BSD-3-Clause
"""gem5 as a second engine: a binary that the user brings runs the scripts in configs/gem5 on the same elaborated
machines (docs/gem5.md)."""
