# SPDX-License-Identifier: BSD-3-Clause
"""Symbols come out of a kernel's image whole: every payload's compression, every layout of the kallsyms table."""

import bz2
import gzip
import lzma
import random
import struct
from pathlib import Path

import pytest
import synthetic

from moscope.errors import UserError
from moscope.naming import elf, image, kallsyms, unpack
from moscope.naming.symbols import SymbolTable

SYMBOLS = [(0, "A", "__per_cpu_start"), (0x1980, "A", "runqueues"), (synthetic.BASE, "T", "_text"),
           (synthetic.BASE, "T", "startup_64"), (synthetic.BASE + 0x100, "t", "the_path" * 20)]
SYMBOLS += [(synthetic.BASE + 0x1000 + 16 * i, "D", f"variable_{i}") for i in range(700)]


@pytest.mark.parametrize("after", [False, True], ids=["offsets before the names", "offsets after the tokens"])
def test_kallsyms_give_back_what_was_put_in(after: bool) -> None:
    assert kallsyms.parse(synthetic.kallsyms(SYMBOLS, after)) == SYMBOLS


def test_tokens_are_found_behind_a_table_that_does_not_end_in_a_zero() -> None:
    numbers = b"".join(bytes([0, i, i + 1]) for i in range(1, 9))  # as the order of names in later 6.1s, without padding
    assert len(numbers) % 8 == 0 and kallsyms.parse(synthetic.kallsyms(SYMBOLS, between=numbers)) == SYMBOLS


def test_data_without_a_table_has_no_symbols() -> None:
    table = bytearray(synthetic.kallsyms(SYMBOLS))
    at = table.index(struct.pack("<Q", len(SYMBOLS)))
    table[at] += 1  # one name more than there are
    for data in (bytes(table), random.Random(1).randbytes(100000), kallsyms.DIGITS * 30):
        with pytest.raises(kallsyms.NoSymbols):
            kallsyms.parse(data)


def lz4(data: bytes) -> bytes:
    """A legacy frame by the simplest compressor: a match where the last 8 bytes repeat, otherwise literals."""
    def lengths(n: int) -> bytes:
        return b"" if n < 15 else b"\xff" * ((n - 15) // 255) + bytes([(n - 15) % 255])

    block, literal, at = b"", b"", 0
    while at < len(data):
        length = 0
        while at >= 8 and at + length < len(data) - 5 and data[at + length] == data[at + length - 8]:
            length += 1
        if length < 4:
            literal += data[at : at + 1]
            at += 1
            continue
        match = length - 4
        block += bytes([min(len(literal), 15) << 4 | min(match, 15)]) + lengths(len(literal)) + literal
        block += b"\x08\x00" + lengths(match)
        literal, at = b"", at + length
    block += bytes([min(len(literal), 15) << 4]) + lengths(len(literal)) + literal
    return unpack.LZ4_LEGACY + struct.pack("<I", len(block)) + block


VMLINUX = synthetic.elf({".rodata": b"\x7fELF" * 4 + random.Random(2).randbytes(900) + bytes(3000) + b"moscope " * 99}, 4096)


@pytest.mark.parametrize("compress", [gzip.compress, bz2.compress, lzma.compress, lz4, bytes])
def test_the_payload_of_a_bzimage_is_unpacked(compress) -> None:
    packed = compress(VMLINUX)
    header = bytearray(512 * 5)
    header[0x1F1] = 4
    header[0x202:0x208] = b"HdrS" + struct.pack("<H", 0x20F)
    tail = packed + struct.pack("<I", len(VMLINUX))  # as the kernel's build does
    header[0x248:0x250] = struct.pack("<II", 16, len(tail))
    assert image.payload(bytes(header) + bytes(16) + tail).startswith(VMLINUX)


def test_a_damaged_payload_and_a_file_that_is_no_kernel_are_user_errors(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="is not a kernel image: expected .*"):
        image.payload(b"#!/bin/sh" + bytes(2000))
    with pytest.raises(unpack.CannotUnpack):
        unpack.unpack(gzip.compress(VMLINUX)[:40] + bytes(40))


def test_an_image_is_read_once_and_then_from_the_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    rodata = b"Linux version 6.1".ljust(64, b"\0") + synthetic.kallsyms([*SYMBOLS, (synthetic.BASE + 0x9000, "D", "linux_banner")])
    file = tmp_path / "vmlinux"
    file.write_bytes(synthetic.elf({".rodata": rodata, ".BTF": types_of("own")}, synthetic.BASE + 0x9000))
    first = image.load(file)
    monkeypatch.setattr(kallsyms, "parse", None)
    again = image.load(file)
    for kernel in (first, again):
        assert kernel.symbols.address("variable_699") == synthetic.BASE + 0x1000 + 16 * 699
        assert str(kernel.per_cpu.at(0x1988)) == "runqueues+0x8"
        assert kernel.btf == types_of("own")
        assert kernel.banner.startswith(b"Linux version 6.1\0")


def types_of(name: str, runqueues: int = 0x1980) -> bytes:
    """A type of this name, and the place of a per-CPU variable."""
    types = synthetic.Types()
    types.section(".data..percpu", {types.variable("runqueues", types.integer(name, 8)): runqueues})
    return types.blob()


def test_types_beside_an_image_are_read_if_it_has_none_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    for name, own in (("bare", {}), ("whole", {".BTF": types_of("own")})):
        file = tmp_path / name
        file.write_bytes(synthetic.elf({".rodata": synthetic.kallsyms(SYMBOLS), **own}, synthetic.BASE + 0x9000))
        assert image.load(file).btf == own.get(".BTF", b"")
        image.beside(file).write_bytes(types_of("beside it"))
        kernel = image.load(file)
        assert kernel.btf == own.get(".BTF", types_of("beside it")) and not kernel.notes


@pytest.mark.parametrize(("content", "why"), [
    (None, "has no types: expected a section .BTF, or the file {beside}"),
    (b"", "{beside}: its types cannot be used"),
    (b"no types at all, but text", "{beside}: its types cannot be used (the magic number of BTF is 0xeb9f"),
    (types_of("mine")[:-3], "{beside}: its types cannot be used (it has "),
    (types_of("mine", runqueues=0x2000), "{beside}: its types cannot be used (1 of 1 per-CPU variables lie elsewhere in the image)")],
    ids=["missing", "empty", "text", "truncated", "of another kernel"])
def test_a_note_names_the_file_whose_types_are_missing_damaged_or_of_another_kernel(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: bytes | None, why: str) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    file = tmp_path / "vmlinuz"
    file.write_bytes(synthetic.elf({".rodata": synthetic.kallsyms(SYMBOLS)}, synthetic.BASE + 0x9000))
    if content is not None:
        image.beside(file).write_bytes(content)
    kernel = image.load(file)
    assert kernel.btf == b"" and len(kernel.notes) == 1 and why.format(beside=image.beside(file)) in kernel.notes[0]


def test_an_elf_files_own_symbols_have_sizes() -> None:
    file = elf.Elf(synthetic.elf({".text": bytes(64)}, 0x401000, [(0x401000, 16, 2, "main"), (0x401020, 8, 1, "counter")]))
    table = SymbolTable(file.symbols())
    assert str(table.at(0x40100F)) == "main+0xf"
    assert table.at(0x401010) is None
    assert str(table.at(0x401020)) == "counter"
    assert table.at(0x400FFF) is None


def test_a_variables_own_name_wins_over_a_section_marker_at_its_address() -> None:
    table = SymbolTable([(16, 0, "D", "__start_rodata"), (16, 0, "D", "jiffies_64"), (16, 0, "D", "jiffies"), (32, 0, "D", "end")])
    assert str(table.at(20)) == "jiffies+0x4"
    assert table.address("jiffies_64") == 16


def test_a_range_without_symbols_is_recognized() -> None:
    table = SymbolTable([(16, 4, "D", "four"), (24, 0, "D", "up to the next"), (32, 8, "D", "last")])
    for first in range(60):
        for end in range(first + 1, 61):
            assert table.none_in(first, end) == all(table.at(at) is None for at in range(first, end)), (first, end)
