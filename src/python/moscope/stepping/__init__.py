# SPDX-License-Identifier: BSD-3-Clause
"""Stepping through coherence traffic: histories of scripts, the page that shows them, and the local server for the page
(docs/stepping.md)."""
