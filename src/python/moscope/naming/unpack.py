# SPDX-License-Identifier: BSD-3-Clause
"""Decompression of a kernel's payload, by its magic number: gzip, xz, lzma, bzip2, LZ4 (legacy frames), zstd.

LZ4's block format is decoded here, after its specification (lz4 block format description, 2022), since Python's own
library lacks it; zstd is left to the `zstd` program.
"""

import bz2
import lzma
import shutil
import subprocess
import zlib

LZ4_LEGACY = b"\x02\x21\x4c\x18"
LEAST_MATCH = 4  # bytes of an LZ4 match


class CannotUnpack(Exception):
    """The payload is damaged or its compression is not supported."""


def unpack(data: bytes) -> bytes:
    """The content of compressed `data`; data after the compressed stream is ignored."""
    for magic, unpacker in UNPACKERS.items():
        if data.startswith(magic):
            try:
                return unpacker(data)
            except (zlib.error, lzma.LZMAError, OSError, EOFError, ValueError, IndexError) as error:
                raise CannotUnpack(f"damaged: {error}") from error
    if data.startswith(b"\x7fELF"):
        return data
    raise CannotUnpack(f"compression with the magic number {data[:6].hex()} is not known")


def _gzip(data: bytes) -> bytes:
    return zlib.decompressobj(31).decompress(data)


def _xz(data: bytes) -> bytes:
    return lzma.LZMADecompressor().decompress(data)


def _bzip2(data: bytes) -> bytes:
    return bz2.BZ2Decompressor().decompress(data)


def _zstd(data: bytes) -> bytes:
    program = shutil.which("zstd")
    if program is None:
        raise CannotUnpack("zstd: the program `zstd` is not installed")
    # The payload's own length follows the stream; the program reports it as an error, but has unpacked everything by then.
    done = subprocess.run([program, "-dcq"], input=data, capture_output=True, check=False)
    if not done.stdout.startswith(b"\x7fELF"):
        raise CannotUnpack(f"zstd: {done.stderr.decode(errors='replace').strip()}")
    return done.stdout


def _lz4_legacy(data: bytes) -> bytes:
    """A legacy frame: the magic number, then blocks of up to 8 MB, each after its compressed size."""
    out = bytearray()
    at = 4
    while at + 4 <= len(data):
        size = int.from_bytes(data[at : at + 4], "little")
        if data[at : at + 4] == LZ4_LEGACY:
            at += 4
            continue
        if size == 0 or at + 4 + size > len(data):  # the kernel's build appends the unpacked size
            break
        lz4_block(data[at + 4 : at + 4 + size], out)
        at += 4 + size
    return bytes(out)


def _length(block: bytes, at: int, of_token: int) -> tuple[int, int]:
    """A length and the position after it. The token gives four bits; if all are set, bytes from `at` on are added."""
    length = of_token
    if of_token == 15:
        while True:
            length += block[at]
            at += 1
            if block[at - 1] != 255:
                break
    return length, at


def lz4_block(block: bytes, out: bytearray) -> None:
    """Appends the content of `block`; matches refer to this block only."""
    start = len(out)
    at, end = 0, len(block)
    while at < end:
        token = block[at]
        literals, at = _length(block, at + 1, token >> 4)
        if literals:
            out += block[at : at + literals]
            at += literals
        if at >= end:
            return
        distance = block[at] | block[at + 1] << 8
        length, at = _length(block, at + 2, token & 15)
        length += LEAST_MATCH
        source = len(out) - distance
        if distance == 0 or source < start:
            raise ValueError("an LZ4 match reaches before its block")
        if distance >= length:
            out += out[source : source + length]
        else:
            pattern = bytes(out[source:])
            out += (pattern * (length // distance + 1))[:length]


UNPACKERS = {
    b"\x1f\x8b": _gzip,
    b"\xfd7zXZ\x00": _xz,
    b"\x5d\x00\x00": _xz,
    b"BZh": _bzip2,
    LZ4_LEGACY: _lz4_legacy,
    b"\x28\xb5\x2f\xfd": _zstd,
}
