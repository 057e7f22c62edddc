# SPDX-License-Identifier: BSD-3-Clause
"""Small images for the tests: a kallsyms table, an ELF file, a BTF blob, made by rules of their own."""

import struct

BASE = 0xFFFFFFFF81000000


def aligned(data: bytes, to: int = 8) -> bytes:
    return data + bytes(-len(data) % to)


def kallsyms(symbols: list[tuple[int, str, str]], after: bool = False, between: bytes = b"") -> bytes:
    """The table for (address, kind, name) in one of the two layouts with offsets: names spelled with one token for
    each character but for the pair "th", which has a token of its own. `between` is what lies between markers and tokens."""
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
             between, aligned(b"".join(t + b"\0" for t in tokens)), struct.pack("<256H", *index)]
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


class Types:
    """Builds a BTF section."""

    def __init__(self) -> None:
        self._text, self._data, self.count = b"\0", b"", 0

    def _name(self, name: str) -> int:
        if not name:
            return 0
        self._text += name.encode() + b"\0"
        return len(self._text) - len(name) - 1

    def _add(self, name: str, kind: int, count: int, size: int, rest: bytes = b"", flag: int = 0) -> int:
        self._data += struct.pack("<III", self._name(name), flag << 31 | kind << 24 | count, size) + rest
        self.count += 1
        return self.count

    def integer(self, name: str, size: int) -> int:
        return self._add(name, 1, 0, size, struct.pack("<I", size * 8))

    def pointer(self, to: int) -> int:
        return self._add("", 2, 0, to)

    def array(self, of: int, count: int) -> int:
        return self._add("", 3, 0, 0, struct.pack("<III", of, of, count))

    def structure(self, name: str, size: int, members: list[tuple[str, int, int]], union: bool = False,
                  bits: dict[str, int] | None = None) -> int:
        """Members of (name, type, offset in bytes); with `bits` (member: width), a structure with bit fields."""
        rest = b"".join(struct.pack("<III", self._name(n), t, o * 8 | (bits or {}).get(n, 0) << 24) for n, t, o in members)
        return self._add(name, 5 if union else 4, len(members), size, rest, flag=int(bits is not None))

    def typedef(self, name: str, of: int) -> int:
        return self._add(name, 8, 0, of)

    def const(self, of: int) -> int:
        return self._add("", 10, 0, of)

    def enumeration(self, name: str, values: dict[str, int]) -> int:
        return self._add(name, 6, len(values), 4, b"".join(struct.pack("<Ii", self._name(n), v) for n, v in values.items()))

    def enumeration64(self, name: str, values: dict[str, int]) -> int:
        return self._add(name, 19, len(values), 8, b"".join(
            struct.pack("<III", self._name(n), v & 0xFFFFFFFF, v >> 32) for n, v in values.items()))

    def variable(self, name: str, of: int) -> int:
        return self._add(name, 14, 0, of, struct.pack("<I", 1))

    def section(self, name: str, variables: dict[int, int]) -> int:
        """The offsets of variables in a section, by the number of their type."""
        return self._add(name, 15, len(variables), 0, b"".join(struct.pack("<III", v, at, 8) for v, at in variables.items()))

    def blob(self) -> bytes:
        return struct.pack("<HBBIIIII", 0xEB9F, 1, 0, 24, 0, len(self._data), len(self._data), len(self._text)) + \
            self._data + self._text
