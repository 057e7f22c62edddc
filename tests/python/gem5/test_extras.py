# SPDX-License-Identifier: BSD-3-Clause
"""The files beside the protocol by which gem5 finds it."""

import re
from pathlib import Path

from moscope import buildproto

FOLDER = "src/mem/ruby/protocol"


def test_the_configuration_selects_what_the_kconfig_offers(root: Path) -> None:
    kconfig = (root / FOLDER / "Kconfig").read_text()
    offered = set(re.findall(r"^    config (\w+)$", kconfig, re.MULTILINE))
    configurations = sorted((root / FOLDER).glob("*.defconfig"))
    assert configurations and offered
    for path in configurations:
        wanted = set(re.findall(r"^(\w+)=y$", path.read_text(), re.MULTILINE))
        assert {"RUBY", "USE_X86_ISA", "BUILD_ISA"} <= wanted and len(wanted & offered) == 1, path


def test_each_choice_of_the_kconfig_is_a_protocol_by_its_exact_name(root: Path) -> None:
    kconfig = (root / FOLDER / "Kconfig").read_text()
    chosen = dict(re.findall(r'default "(\w+)" if (\w+)', kconfig))
    assert chosen
    for name in chosen:
        slicc = buildproto.known_protocols()[name]
        assert slicc.name == f"{name}.slicc" and f'protocol "{name}";' in slicc.read_text()


def test_the_object_that_gem5_compiles_is_named_in_its_sconscript(root: Path) -> None:
    folder = root / FOLDER / "gem5"
    sconscript = (folder / "SConscript").read_text()
    for path in folder.iterdir():
        if path.suffix in (".cc", ".py"):
            assert f"'{path.name}'" in sconscript
