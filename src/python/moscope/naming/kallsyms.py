# SPDX-License-Identifier: BSD-3-Clause
"""The symbol table that a Linux kernel carries for itself (CONFIG_KALLSYMS), read from its image.

The image does not say where its parts are. They are found by their form: 256 tokens that end in a zero, followed
by the table of their offsets; a count followed by so many length-prefixed names whose every 256th offset is in the
table of markers after them. Layouts: offsets from a base before the names (4.6 to 6.3) or after the tokens (6.4 on),
whole addresses before the names (older).
"""

import re
import struct
from bisect import bisect_left
from dataclasses import dataclass
from itertools import accumulate

from moscope.guest.addresses import IMAGE_MAP

DIGITS = b"".join(bytes([c, 0]) for c in b"0123456789")
KINDS = frozenset(b"aAbBdDgGnNrRsStTuUvVwWiI-?")
WINDOW = 16 << 20  # bytes; the names of the largest kernels take less
LONGEST_TOKENS = 0x4000


class NoSymbols(Exception):
    """The image has no symbol table that this module knows."""


@dataclass(frozen=True)
class _Names:
    count_at: int
    names: list[str]


def parse(data: bytes) -> list[tuple[int, str, str]]:
    """(address, kind letter as nm prints it, name) in the table's order. Addresses below 2^31 are per-CPU offsets."""
    for found in re.finditer(re.escape(DIGITS), data):
        tokens = _tokens(data, found.start())
        if tokens is None:
            continue
        start, table, end = tokens
        names = _names(data, start, table)
        if names is not None:
            addresses = _addresses(data, names, end)
            return [(a, n[0], n[1:]) for a, n in zip(addresses, names.names, strict=True)]
    raise NoSymbols("no kallsyms table was found in the image")


def _align(at: int, to: int = 8) -> int:
    return -(-at // to) * to


def _tokens(data: bytes, zero: int) -> tuple[int, list[bytes], int] | None:
    """Where the tokens begin, the tokens, and where their index ends, if the token "0" (number 48) lies at `zero`."""
    start = zero
    for _ in range(48):
        start = data.rfind(b"\0", max(start - LONGEST_TOKENS, 0), start - 1) + 1
        if start == 0:
            return None
    # The first token is preceded by padding, or by bytes of another table that do not end in a zero. In this case the tokens
    # begin at the next multiple of eight. The index decides between the two.
    for begin in (start, _align(start)):
        table = data[begin : begin + LONGEST_TOKENS].split(b"\0", 256)[:256]
        if len(table) < 256:
            return None
        offsets = [0, *accumulate(len(t) + 1 for t in table)]
        index = _align(begin + offsets[256])
        if data[index : index + 512] == struct.pack("<256H", *offsets[:256]):
            return begin, table, index + 512
    return None


def _names(data: bytes, tokens_at: int, table: list[bytes]) -> _Names | None:
    """Searches backwards from the tokens for a count that is followed by that many names."""
    for at in range(tokens_at & ~7, max(tokens_at - WINDOW, 0), -8):
        if data[at + 3 : at + 8] != b"\0\0\0\0\0" or data[at : at + 3] == b"\0\0\0":
            continue
        count = int.from_bytes(data[at : at + 4], "little")
        # A name takes at least three bytes, one of which is its length.
        if at + 8 + count * 3 > tokens_at or not _first_name_plausible(data, at + 8, table):
            continue
        names = _walk(data, at + 8, count, tokens_at, table)
        if names is not None:
            return _Names(at, names)
    return None


def _first_name_plausible(data: bytes, at: int, table: list[bytes]) -> bool:
    length = data[at]
    return length > 0 and table[data[at + 1]][:1] != b"" and table[data[at + 1]][0] in KINDS


def _walk(data: bytes, start: int, count: int, limit: int, table: list[bytes]) -> list[str] | None:
    names: list[str] = []
    markers: list[int] = []
    at = start
    for number in range(count):
        if number % 256 == 0:
            markers.append(at - start)
        length = data[at]
        at += 1
        if length & 0x80:
            length = length & 0x7F | data[at] << 7
            at += 1
        if length == 0 or at + length > limit:
            return None
        name = b"".join([table[token] for token in data[at : at + length]])
        if name[0] not in KINDS:
            return None
        names.append(name.decode("latin-1"))
        at += length
    for width in ("I", "Q"):
        expected = struct.pack(f"<{len(markers)}{width}", *markers)
        if expected in data[at : at + 8 + len(expected)]:
            return names
    return None


def _addresses(data: bytes, names: _Names, index_end: int) -> list[int]:
    count = len(names.names)
    size = _align(count * 4)
    after = _align(index_end)
    for offsets_at, base_at in ((after, after + size), (names.count_at - 8 - size, names.count_at - 8)):
        if offsets_at < 0 or base_at + 8 > len(data):
            continue
        (base,) = struct.unpack_from("<Q", data, base_at)
        if base < IMAGE_MAP:
            continue
        offsets = struct.unpack_from(f"<{count}i", data, offsets_at)
        if sum(o < 0 for o in offsets) * 2 > count:
            # Negative: relative to the base. Positive: absolute, which only per-CPU symbols are.
            return [o if o >= 0 else base - 1 - o for o in offsets]
        if list(offsets) == sorted(offsets):
            return [base + o for o in offsets]
    if names.count_at >= count * 8:
        whole = struct.unpack_from(f"<{count}Q", data, names.count_at - count * 8)
        if bisect_left(sorted(whole), IMAGE_MAP) * 2 < count:
            return list(whole)
    raise NoSymbols("the kallsyms table has names, and no addresses where any known layout has them")
