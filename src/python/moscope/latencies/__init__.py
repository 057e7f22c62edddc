# SPDX-License-Identifier: BSD-3-Clause
"""Idle latencies and bandwidths of a machine, with their references."""
