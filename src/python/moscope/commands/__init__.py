# SPDX-License-Identifier: BSD-3-Clause
"""The commands, one module each, found by their place in this folder (see moscope.cli)."""
