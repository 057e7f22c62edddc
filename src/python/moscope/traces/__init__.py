# SPDX-License-Identifier: BSD-3-Clause
"""Scripted accesses: script -> plan -> messages and transitions -> text, diagram, document."""
