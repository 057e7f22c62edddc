# SPDX-License-Identifier: BSD-3-Clause
"""Coherence protocols: which there are, their tables, tests, and building one's own."""
