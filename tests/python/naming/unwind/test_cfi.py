# SPDX-License-Identifier: BSD-3-Clause
"""Call chains of user programs, against the C library's own unwinder on the host."""

import shutil
import struct
import subprocess
from pathlib import Path

import pytest

from moscope.naming.unwind.cfi import Cfi
from moscope.naming.unwind.chains import Sample, Unwinder
from moscope.naming.unwind.state import BY_ENCODING, Frame, Stack

SOURCE = Path(__file__).parent / "backtrace.c"
OPTIONS = {"without frame pointers": ["-O2", "-fomit-frame-pointer"], "not optimised": ["-O0"],
           "static": ["-O2", "-static"], "without an index of the tables": ["-O2", "-static", "-Wl,--no-eh-frame-hdr"]}


def words(data: bytes, at: int, count: int) -> tuple[int, ...]:
    return struct.unpack_from(f"<{count}Q", data, at)


@pytest.mark.skipif(not shutil.which("gcc"), reason="needs gcc")
@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
def test_the_chain_is_the_one_that_the_c_library_finds(options: list[str], tmp_path: Path) -> None:
    program = tmp_path / "backtrace"
    subprocess.run(["gcc", "-g", "-fno-optimize-sibling-calls", "-no-pie", *options, str(SOURCE), "-o", str(program)], check=True)
    data = subprocess.run([program], check=True, capture_output=True).stdout
    rip, *registers = words(data, 0, 17)
    (size,) = words(data, 17 * 8, 1)
    stack = data[18 * 8:18 * 8 + size]
    (count,) = words(data, 18 * 8 + size, 1)
    expected = words(data, 19 * 8 + size, count)
    frame = Frame(dict(zip(BY_ENCODING, registers, strict=True)) | {"rip": rip}, exact=True)
    cfi = Cfi(program.read_bytes())
    unwinder = Unwinder(None, 0, lambda address, cr3: (cfi, address))
    found = unwinder.chain(Sample(0, 0, 0, 0, frame, True, Stack(frame.rsp, b""), stack))
    own = [address + 1 for address in found[1:] if cfi.covers(address)]
    assert own[:8] == list(expected[1:9]) and len(own) >= 8, "the callers of innermost up to main are eight"


def test_a_file_without_tables_or_with_damaged_ones_has_no_answer(tmp_path: Path) -> None:
    for data in (b"", b"\x7fELF\x02\x01 and no more", bytes(200)):
        assert not Cfi(data).covers(0x1000)
