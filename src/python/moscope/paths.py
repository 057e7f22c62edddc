# SPDX-License-Identifier: BSD-3-Clause
"""Where things are: the checkout or the installed package, the build folder, the user's cache.

Everything is derived from this file's own place, so a checkout and an installation can be moved or copied. An installation
(a wheel, see src/python/wheel) is laid out as a checkout below `moscope/data`: what is read has the same place relative to
`root()` in both. An installation is only read; whatever is made goes into the user's cache.
"""

import os
import sys
from pathlib import Path

from moscope.errors import UserError

VARIANTS = ("opt", "debug", "asan")
PACKAGE = Path(__file__).resolve().parent
DATA = PACKAGE / "data"  # only an installation has it


def installed() -> bool:
    """Whether this is an installation and not a checkout."""
    return DATA.is_dir()


def root() -> Path:
    """The checkout, or what stands for it in an installation."""
    return DATA if installed() else PACKAGE.parents[2]


def launcher() -> str:
    """The command `moscope` as the current folder names it."""
    if installed():
        return "moscope"
    return "./moscope" if Path.cwd() == root() else str(root() / "moscope")


def import_dir() -> Path:
    """The folder from which Python imports `moscope`."""
    return PACKAGE.parent


def import_analysis() -> None:
    """Lets `import analysis` find the package beside moscope, behind all that Python finds otherwise."""
    if str(root()) not in sys.path:
        sys.path.append(str(root()))


def variant() -> str:
    """The variant in use (MOSCOPE_VARIANT); an installation has the first only."""
    return VARIANTS[0] if installed() else os.environ.get("MOSCOPE_VARIANT") or VARIANTS[0]


def build_dir() -> Path:
    return root() / "build" / variant()


def native_package() -> Path:
    """The folder that holds `_engine` and extends the package `moscope`."""
    return build_dir() / "moscope"


def engine_library() -> Path:
    return build_dir() / "libmoscope_engine.so"


def protocol_dir() -> Path:
    """The project's built protocols: NAME.so, NAME.json, and NAME.check.so where something has asked for it."""
    return build_dir() / "protocol"


def workload_dir() -> Path:
    """Programs of the supplied workloads, in an installation; a checkout builds them in the user's cache."""
    return build_dir() / "workloads"


def user_protocol_dir() -> Path:
    """Protocols that users bring, built: beside the others in a checkout, in the user's cache for an installation."""
    return cache_dir() / "protocol" if installed() else protocol_dir() / "user"


def is_utf8(text: str) -> bool:
    """Whether a path or an argument is valid UTF-8. Linux allows any bytes; Python replaces each invalid byte by a
    surrogate."""
    return text == text.encode(errors="ignore").decode()


def cache_dir() -> Path:
    """Shared by all checkouts and installations of this user."""
    base = os.environ.get("XDG_CACHE_HOME", "")
    if not os.path.isabs(base):  # which the XDG Base Directory Specification says to ignore
        base = os.path.join(os.path.expanduser("~"), ".cache")
    if not os.path.isabs(base):  # HOME is relative, or this user has no home at all, as in some containers
        raise UserError(f"HOME: {os.environ.get('HOME', 'is not set')}: expected an absolute path, for the cache (or XDG_CACHE_HOME)")
    return Path(base) / "moscope"
