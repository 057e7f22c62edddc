# SPDX-License-Identifier: BSD-3-Clause
"""The common configuration of the project's kernel and the variants laid over it."""

import pytest

from moscope.guest import kernel_config


def test_options_that_the_source_did_not_take_are_found() -> None:
    wanted = "# CONFIG_X=y in a remark\nCONFIG_A=y\nCONFIG_B=64\nCONFIG_C=n\nCONFIG_D=n\n"
    assert kernel_config.disregarded(wanted, "CONFIG_A=y\nCONFIG_B=64\n# CONFIG_C is not set\n") == []
    assert kernel_config.disregarded(wanted, "CONFIG_B=8\nCONFIG_C=y\n") == ["CONFIG_A=y", "CONFIG_B=64", "CONFIG_C=n"]


def test_a_variants_line_replaces_the_common_one_of_its_option_alone() -> None:
    lower = "# CONFIG_A=y as a remark stays\nCONFIG_A=y\nCONFIG_AB=y\nCONFIG_C=n\n"
    laid = kernel_config.laid_over(lower, "CONFIG_A=n\nCONFIG_D=y\n").splitlines()
    assert [line for line in laid if line] == ["# CONFIG_A=y as a remark stays", "CONFIG_AB=y", "CONFIG_C=n", "CONFIG_A=n", "CONFIG_D=y"]


def test_without_a_variant_the_fragment_is_the_common_file() -> None:
    assert kernel_config.fragment("") == kernel_config.common().read_text()


@pytest.mark.parametrize("variant", kernel_config.variants())
def test_a_variant_changes_something_and_says_so_in_its_release(variant: str) -> None:
    lines = kernel_config.fragment(variant).splitlines()
    assert f'CONFIG_LOCALVERSION="-moscope-{variant}"' in lines
    options = [line.split("=")[0] for line in lines if "=" in line and not line.startswith("#")]
    assert len(options) == len(set(options)), "an option is there twice"
    assert set(lines) - set(kernel_config.fragment("").splitlines()) - {f'CONFIG_LOCALVERSION="-moscope-{variant}"'}
