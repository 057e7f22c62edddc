# SPDX-License-Identifier: BSD-3-Clause
"""DWARF debug information of programs: units, types, variables, source lines."""
