# SPDX-License-Identifier: BSD-3-Clause
"""Measure the speed of the simulator, and machines under load."""
