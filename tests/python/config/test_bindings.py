# SPDX-License-Identifier: BSD-3-Clause
"""Bindings fit the protocols: what they name exists, and no latency is left to a protocol's default."""

from __future__ import annotations

import re

import pytest

from moscope.config import Name, elaborate, load_machine, replace
from moscope.config.bindings import values_for
from moscope.paths import root

PROTOCOLS = root() / "src" / "mem" / "ruby" / "protocol"
# What a binding may say of the sequencers, which are no part of the protocol.
OF_THE_SEQUENCER = {"sequencer.nt_store_type", "sequencer.uncached_load_type"}


def declared(protocol: str) -> dict[str, str]:
    """MACHINE.PARAMETER and type of the plain parameters, read off the machines' heads."""
    found = {}
    for path in PROTOCOLS.glob(f"{protocol}-*.sm"):
        text = re.sub(r"//.*", "", path.read_text())
        for machine, head in re.findall(r"machine\(MachineType:(\w+).*?\)\s*:(.*?)\{", text, re.DOTALL):
            for kind, name in re.findall(r"\b(\w+)\s+(\w+)\s*(?::=[^;]*)?;", head):
                found[f"{machine}.{name}"] = kind
    return found


@pytest.mark.parametrize("protocol", ["MOESI_HTAssist"])
def test_a_binding_names_parameters_that_exist(protocol: str) -> None:
    known = declared(protocol)
    names = {key.split(".")[1] for key in known}
    for key in values_for(protocol, load_machine("opteron48")):
        assert key in known or key in names or key in OF_THE_SEQUENCER, key


def test_what_a_binding_says_of_the_sequencers_reaches_them() -> None:
    machine = load_machine("small")
    heads = {"type": "L1Cache", "params": [{"name": "sequencer", "type": "Sequencer", "pointer": True, "default": None}], "buffers": []}
    told = {p: elaborate(replace(machine, protocol=Name(p)), {"protocol": p, "machines": [heads]})["controllers"][0]["sequencer"]
            for p in ("MOESI_HTAssist", "MSI")}
    assert {p: s["nt_store_type"] for p, s in told.items()} == {"MOESI_HTAssist": "COMMIT", "MSI": "ST"}
    assert {p: s["uncached_load_type"] for p, s in told.items()} == {"MOESI_HTAssist": "IO", "MSI": "NULL"}


def test_every_plain_parameter_of_moesi_htassist_comes_from_the_machine() -> None:
    bound = values_for("MOESI_HTAssist", load_machine("opteron48"))
    free = [key for key in declared("MOESI_HTAssist") if key not in bound and key.split(".")[1] not in bound]
    assert free == []


def test_the_filter_switch_reaches_the_protocol() -> None:
    assert values_for("MOESI_HTAssist", load_machine("opteron48"))["probe_filter_enabled"] is True
    assert values_for("MOESI_HTAssist", load_machine("opteron48_broadcast"))["probe_filter_enabled"] is False
