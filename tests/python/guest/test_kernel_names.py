# SPDX-License-Identifier: BSD-3-Clause
"""Names of the project's kernel and the table of fixes behind them."""

import pytest

from moscope.errors import UserError
from moscope.guest import kernel, kernel_names


@pytest.mark.parametrize(("name", "setting"), [
    ("stock", "stock"), ("pk", "pk"), ("upstream", "upstream"), ("pk-7", "pk-7"), ("stock+14,7", "stock+7,14"),
    ("stock+7,7", "stock+7")])
def test_a_name_becomes_the_one_way_of_writing_its_setting(name: str, setting: str) -> None:
    assert kernel_names.is_ours(name)
    assert kernel_names.setting(name) == setting


@pytest.mark.parametrize("name", ["stock+", "stock-7", "pk+7", "pk-7,", "upstream+7", "pk- 7", "stock+x"])
def test_a_malformed_mix_is_refused_with_what_is_expected(name: str) -> None:
    with pytest.raises(UserError, match=r"no kernel called .*expected stock"):
        kernel_names.setting(name)


def test_a_fix_that_cannot_be_switched_is_named() -> None:
    with pytest.raises(UserError, match=r"pk-7,99: fix 99 cannot be switched.*7.*14"):
        kernel_names.setting("pk-7,99")


@pytest.mark.parametrize(("wanted", "near"), [("stok", "stock"), ("upstrem", "upstream"), ("distr", "distro")])
def test_an_unknown_kernel_is_answered_with_the_nearest(wanted: str, near: str) -> None:
    with pytest.raises(UserError, match=f"such as .*{near}"):
        kernel.find(wanted, lambda text: None)


def test_a_list_of_kernels_keeps_the_numbers_of_a_mix_together() -> None:
    from moscope.runs import options

    assert options.kernels("stock,stock+7,14,pk-7,upstream") == ["stock", "stock+7,14", "pk-7", "upstream"]
    assert options.kernels("distro") == ["distro"]
    with pytest.raises(UserError, match="appears twice"):
        options.kernels("pk,stock,pk")
    with pytest.raises(UserError, match="empty name"):
        options.kernels("pk,,stock")
    with pytest.raises(UserError, match="fix 99"):
        options.kernels("stock+7,99")
