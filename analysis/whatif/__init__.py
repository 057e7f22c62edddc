# SPDX-License-Identifier: BSD-3-Clause
"""Which lines a what-if run treats otherwise, and how: from the tables of a point."""
