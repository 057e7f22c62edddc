# SPDX-License-Identifier: BSD-3-Clause
"""Booting a machine: the engine's configuration, the console, and the results of a boot."""
