# SPDX-License-Identifier: BSD-3-Clause
"""Load orders, on modules that the test puts together."""

import gzip
import lzma
import struct
from pathlib import Path

import pytest

from moscope.errors import UserError
from moscope.guest.modules import Modules, depends


def module(needs: str) -> bytes:
    """A 64-bit ELF object with nothing but a .modinfo section and its string table."""
    info = b"license=GPL\0depends=" + needs.encode() + b"\0name=x\0"
    names = b"\0.modinfo\0.shstrtab\0"
    head = b"\x7fELF\x02\x01\x01" + bytes(9) + struct.pack("<HHIQQQIHHHHHH", 1, 62, 1, 0, 0, 64 + len(info) + len(names),
                                                        0, 64, 0, 0, 64, 3, 2)
    sections = [(0, 0, 0, 0, 0, 0), (1, 1, 0, 0, 64, len(info)), (10, 3, 0, 0, 64 + len(info), len(names))]
    table = b"".join(struct.pack("<IIQQQQIIQQ", *s, 0, 0, 0, 0) for s in sections)
    return head + info + names + table


def tree(tmp_path: Path, needs: dict[str, str]) -> Modules:
    folder = tmp_path / "kernel" / "drivers"
    folder.mkdir(parents=True)
    for name, wanted in needs.items():
        (folder / f"{name}.ko").write_bytes(module(wanted))
    (tmp_path / "modules.builtin").write_text("kernel/lib/base-lib.ko\n")
    return Modules(tmp_path)


def test_what_a_module_needs_is_loaded_before_it_and_once(tmp_path: Path) -> None:
    modules = tree(tmp_path, {"virtio-blk": "ring,virtio", "virtio": "ring", "ring": "base_lib"})
    assert modules.order("virtio_blk") == ["ring", "virtio", "virtio_blk"]


def test_what_is_built_in_needs_no_loading(tmp_path: Path) -> None:
    modules = tree(tmp_path, {})
    assert modules.knows("base-lib") and modules.order("base_lib") == []


def test_a_missing_module_is_named_with_what_needs_it(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no module ring, needed by virtio: "):
        tree(tmp_path, {"virtio": "ring"}).order("virtio")


def test_modules_that_need_each_other_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="a -> b -> a"):
        tree(tmp_path, {"a": "b", "b": "a"}).order("a")


def test_compressed_modules_are_unpacked(tmp_path: Path) -> None:
    modules = tree(tmp_path, {})
    (tmp_path / "kernel" / "packed.ko.xz").write_bytes(lzma.compress(module("")))
    assert Modules(tmp_path).order("packed") == ["packed"]
    assert Modules(tmp_path).data("packed") == module("") and not modules.knows("packed")


@pytest.mark.parametrize(("ending", "packed"), [("xz", lzma.compress(module(""))), ("gz", gzip.compress(module("")))])
def test_a_compressed_module_that_was_cut_off_is_named(tmp_path: Path, ending: str, packed: bytes) -> None:
    tree(tmp_path, {})
    (tmp_path / "kernel" / f"packed.ko.{ending}").write_bytes(packed[:-9])
    with pytest.raises(UserError, match=rf"packed.ko.{ending}: cannot be unpacked \(Compressed (file|data) ended"):
        Modules(tmp_path).order("packed")


@pytest.mark.parametrize("data", [b"", b"\x7fELF\x02\x01", module("")[:100], b"#!/bin/sh\n" * 100])
def test_what_is_no_module_is_a_user_error(data: bytes) -> None:
    with pytest.raises(UserError, match=r"^m\.ko: is not a kernel module"):
        depends(data, "m.ko")
