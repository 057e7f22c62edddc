# SPDX-License-Identifier: BSD-3-Clause
"""Where things are: the checkout, the build folder of the variant in use (MOSCOPE_VARIANT), the user's cache.

Everything is derived from this file's own place, so a checkout can be moved or copied.
"""

import os
from pathlib import Path

VARIANTS = ("opt", "debug", "asan")


def root() -> Path:
    """The checkout."""
    return Path(__file__).resolve().parents[3]


def variant() -> str:
    return os.environ.get("MOSCOPE_VARIANT") or "opt"


def build_dir() -> Path:
    return root() / "build" / variant()


def native_package() -> Path:
    """The folder that holds `_engine` and extends the package `moscope`."""
    return build_dir() / "moscope"


def engine_library() -> Path:
    return build_dir() / "libmoscope_engine.so"


def protocol_dir() -> Path:
    """Built protocols: NAME.so, NAME.json, and NAME.check.so where something has asked for it."""
    return build_dir() / "protocol"


def cache_dir() -> Path:
    """Shared by all checkouts of this user."""
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return Path(base) / "moscope"
