# SPDX-License-Identifier: BSD-3-Clause
"""From machine values to the parameters of a protocol's SLICC machines. One file per protocol that has
parameters of its own; each registers a function that returns values by "MACHINE.PARAMETER" or, for all
machines of the protocol alike, by "PARAMETER". What it leaves out is bound by name in `generic.py`."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable
from typing import Any

from ..machine import Machine

Binding = Callable[[Machine], dict[str, Any]]
_registry: dict[str, Binding] = {}


def binding(protocol: str) -> Callable[[Binding], Binding]:
    def register(function: Binding) -> Binding:
        _registry[protocol] = function
        return function

    return register


def values_for(protocol: str, machine: Machine) -> dict[str, Any]:
    for module in pkgutil.iter_modules(__path__):
        importlib.import_module(f"{__name__}.{module.name}")
    function = _registry.get(protocol)
    return function(machine) if function else {}
