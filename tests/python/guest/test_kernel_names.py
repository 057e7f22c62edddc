# SPDX-License-Identifier: BSD-3-Clause
"""Names of the project's kernel and the table of fixes behind them."""

from pathlib import Path

import pytest

from moscope.errors import UserError
from moscope.guest import kernel, kernel_build, kernel_names


@pytest.mark.parametrize(("name", "setting"), [
    ("stock", "stock"), ("pk", "pk"), ("upstream", "upstream"), ("pk-7", "pk-7"), ("stock+14,7", "stock+7,14")])
def test_a_kernel_name_has_one_canonical_setting(name: str, setting: str) -> None:
    assert kernel_names.is_ours(name)
    assert kernel_names.setting(name) == setting


@pytest.mark.parametrize("name", ["stock+", "stock-7", "pk+7", "pk-7,", "upstream+7", "pk- 7", "stock+x"])
def test_a_malformed_mix_is_refused_with_what_is_expected(name: str) -> None:
    with pytest.raises(UserError, match=r"no kernel called .*expected stock"):
        kernel_names.setting(name)


def test_a_fix_that_appears_twice_is_refused() -> None:
    with pytest.raises(UserError, match="^--kernel: pk-14,7,07: fix 7 appears twice: expected each fix once$"):
        kernel_names.setting("pk-14,7,07")


def test_names_that_come_close_to_a_mix_stand_in_the_order_of_their_numbers() -> None:
    with pytest.raises(UserError, match=r"such as stock or stock\+7 or stock\+9$"):
        kernel_names.setting("stock-7")


def test_a_fix_that_cannot_be_switched_is_named() -> None:
    with pytest.raises(UserError, match=r"pk-7,99: fix 99 cannot be switched.*7.*14"):
        kernel_names.setting("pk-7,99")


def test_a_name_with_a_variant_names_another_build_and_an_unknown_variant_is_refused() -> None:
    assert kernel.check_name("stock+14,7@queued") == "stock+7,14@queued"
    for name in ("pk@quued", "pk@"):
        with pytest.raises(UserError, match=r"--kernel: no variant of the kernel called .*expected .*queued"):
            kernel.check_name(name)
    with pytest.raises(UserError, match="fix 99"):
        kernel.check_name("pk-99@queued")


def test_a_kernel_with_a_variant_boots_the_image_of_that_build(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def build(say: object, variant: str) -> kernel_build.Built:
        (tmp_path / "vmlinuz").write_text(variant)
        return kernel_build.Built("key", tmp_path, {"sha256": "0", "source": variant})

    monkeypatch.setattr(kernel_build, "build", build)
    found = kernel.find("pk-7@queued", lambda text: None)
    assert (found.name, found.append, found.origin) == ("pk-7@queued", "moscope.fix=pk-7", "built from queued")


@pytest.mark.parametrize(("wanted", "near"), [("stok", "stock"), ("upstrem", "upstream"), ("distr", "distro"), ("PK", "pk")])
def test_an_unknown_kernel_is_answered_with_the_nearest(wanted: str, near: str) -> None:
    with pytest.raises(UserError, match=rf"such as .*{near}.* \(one of distro, stock, pk, upstream, stock\+N,N or pk-N,N, or a file\)"):
        kernel.find(wanted, lambda text: None)


def test_a_list_of_kernels_keeps_the_numbers_of_a_mix_together() -> None:
    from moscope.runs import options

    assert options.kernels("stock,stock+7,14,pk-7,upstream") == ["stock", "stock+7,14", "pk-7", "upstream"]
    assert options.kernels("stock+7,14@queued,pk@checked") == ["stock+7,14@queued", "pk@checked"]
    assert options.kernels("distro") == ["distro"]
    with pytest.raises(UserError, match="appears twice"):
        options.kernels("pk,stock,pk")
    with pytest.raises(UserError, match="empty name"):
        options.kernels("pk,,stock")
    with pytest.raises(UserError, match="fix 99"):
        options.kernels("stock+7,99")


def test_a_path_is_a_file_whatever_it_begins_with() -> None:
    assert not kernel_names.is_ours("upstream-6.1/arch/x86/boot/bzImage") and not kernel_names.is_ours("pk-9/vmlinuz")
