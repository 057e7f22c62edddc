# SPDX-License-Identifier: BSD-3-Clause
"""Small images for the tests: a kallsyms table, an ELF file, a BTF blob, made by rules of their own."""

import struct

BASE = 0xFFFFFFFF81000000


def aligned(data: bytes, to: int = 8) -> bytes:
    return data + bytes(-len(data) % to)


def kallsyms(symbols: list[tuple[int, str, str]], after: bool = False) -> bytes:
    """The table for (address, kind, name) in one of the two layouts with offsets: names spelled with one token for
    each character but for the pair "th", which has a token of its own."""
    tokens = [bytes([i]) if 0 < i < 128 else b"" for i in range(256)]
    tokens[200] = b"th"
    tokens[201] = b"x" * 40
    names, markers = b"", []
    for number, (_, kind, name) in enumerate(symbols):
        if number % 256 == 0:
            markers.append(len(names))
        spelled = (kind + name).encode().replace(b"th", bytes([200]))
        length = bytes([len(spelled)]) if len(spelled) < 128 else bytes([len(spelled) & 127 | 128, len(spelled) >> 7])
        names += length + spelled
    offsets = aligned(struct.pack(f"<{len(symbols)}i", *[a if a < 1 << 31 else BASE - 1 - a for a, _, _ in symbols]))
    base = struct.pack("<Q", BASE)
    index, at = [], 0
    for token in tokens:
        index.append(at)
        at += len(token) + 1
    parts = [struct.pack("<Q", len(symbols)), aligned(names), aligned(struct.pack(f"<{len(markers)}I", *markers)),
             aligned(b"".join(t + b"\0" for t in tokens)), struct.pack("<256H", *index)]
    parts = [*parts, offsets, base] if after else [offsets, base, *parts]
    return bytes(64) + b"".join(parts) + bytes(64)


def elf(sections: dict[str, bytes], address: int, symbols: list[tuple[int, int, int, str]] | None = None) -> bytes:
    """An executable whose first section is loaded at `address`; symbols of (address, size, type, name)."""
    content = dict(sections)
    if symbols is not None:
        strings, table = b"\0", bytes(24)
        for where, size, kind, name in symbols:
            table += struct.pack("<IBBHQQ", len(strings), 16 | kind, 0, 1, where, size)
            strings += name.encode() + b"\0"
        content |= {".symtab": table, ".strtab": strings}
    content[".shstrtab"] = b"\0" + b"\0".join(n.encode() for n in [*content, ".shstrtab"]) + b"\0"
    names = list(content)
    body, headers, at = b"", bytes(64), 120
    for name in names:
        data = aligned(content[name])
        kind, link = (2, names.index(".strtab") + 1) if name == ".symtab" else (1, 0)
        headers += struct.pack("<IIQQQQIIQQ", content[".shstrtab"].find(b"\0" + name.encode() + b"\0") + 1, kind, 0,
                               address if name == names[0] else 0, at + len(body), len(content[name]), link, 0, 8, 0)
        body += data
    first = len(content[names[0]])
    header = b"\x7fELF\x02\x01\x01" + bytes(9) + struct.pack("<HHIQQQIHHHHHH", 2, 62, 1, address, 64, 120 + len(body),
                                                            0, 64, 56, 1, 64, len(names) + 1, len(names))
    return header + struct.pack("<IIQQQQQQ", 1, 5, 120, address, address, first, first, 4096) + body + headers
