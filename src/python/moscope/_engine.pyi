# SPDX-License-Identifier: BSD-3-Clause
"""The native module for type checkers: src/python/bindings defines it, without types for Python."""

from typing import Any

def __getattr__(name: str) -> Any: ...
