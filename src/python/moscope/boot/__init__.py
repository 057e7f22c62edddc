# SPDX-License-Identifier: BSD-3-Clause
"""Booting a machine: from options to the engine's configuration, the console, and what a run leaves behind."""
