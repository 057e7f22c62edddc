# SPDX-License-Identifier: BSD-3-Clause
"""Benchmarks of the project's own speed; one module per benchmark."""
