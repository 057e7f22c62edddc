# SPDX-License-Identifier: BSD-3-Clause
"""moscope, a full-system simulator of the 48-core Opteron machine of the MOSBENCH paper: its Python interface (docs/python.md).

`moscope.latency`, `moscope.trace`, `moscope.run` and `moscope.sweep` are what the commands of these names do, `moscope.check` and
`moscope.verify` what those of `moscope protocol` do. They are loaded when they are first used, so that the command line starts
quickly. No sub-package has the name of a function, which importing it would hide. The native module `moscope._engine` is in the
build folder of the variant in use.
"""

import importlib
from typing import TYPE_CHECKING, Any

from moscope._version import VERSION as __version__
from moscope.paths import native_package

if TYPE_CHECKING:
    from moscope.api import Check as Check
    from moscope.api import Latency as Latency
    from moscope.api import Machine as Machine
    from moscope.api import Progress as Progress
    from moscope.api import Run as Run
    from moscope.api import Sweep as Sweep
    from moscope.api import Trace as Trace
    from moscope.api import Verification as Verification
    from moscope.api import check as check
    from moscope.api import latency as latency
    from moscope.api import machines as machines
    from moscope.api import open_run as open_run
    from moscope.api import run as run
    from moscope.api import sweep as sweep
    from moscope.api import trace as trace
    from moscope.api import verify as verify
    from moscope.errors import BuildFailed as BuildFailed
    from moscope.errors import GuestDied as GuestDied
    from moscope.errors import MoscopeError as MoscopeError
    from moscope.errors import ProtocolError as ProtocolError
    from moscope.errors import SimulatorBug as SimulatorBug
    from moscope.errors import UserError as UserError
    from moscope.errors import WorkloadFailed as WorkloadFailed
    from moscope.schema.errors import ConfigError as ConfigError

__path__.append(str(native_package()))

_FUNCTIONS = ("check", "latency", "machines", "open_run", "run", "sweep", "trace", "verify")
_CLASSES = ("Check", "Latency", "Machine", "Progress", "Run", "Sweep", "Trace", "Verification")
_ERRORS = ("BuildFailed", "GuestDied", "MoscopeError", "ProtocolError", "SimulatorBug", "UserError", "WorkloadFailed")
_INPUT_ERRORS = ("ConfigError",)
_HOME = {**dict.fromkeys((*_FUNCTIONS, *_CLASSES), "moscope.api"), **dict.fromkeys(_ERRORS, "moscope.errors"),
         **dict.fromkeys(_INPUT_ERRORS, "moscope.schema.errors")}
__all__ = ["__version__", *_FUNCTIONS, *_CLASSES, *_ERRORS, *_INPUT_ERRORS]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return __all__
