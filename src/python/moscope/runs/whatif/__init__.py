# SPDX-License-Identifier: BSD-3-Clause
"""`moscope what-if`: what a line costs, by experiment. The same window runs again from the same checkpoint, with chosen lines
treated differently (src/mem/what_if.hh)."""
