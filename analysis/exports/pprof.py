# SPDX-License-Identifier: BSD-3-Clause
"""A profile for `pprof` (perftools.profiles.Profile, gzipped protocol buffers): stall, spinning and transactions by stack. The innermost
frame is the name of the line that was waited for; the functions inlined at an instruction are lines of one location."""

import gzip
from collections.abc import Iterable

from analysis.described import FS_PER_NS
from analysis.exports.base import Export, Frame, Slice, Stack, stacks
from analysis.run_directory import Point

# Field numbers of the messages of profile.proto.
SAMPLE_TYPE, SAMPLE, LOCATION, FUNCTION, STRINGS, DURATION, DEFAULT_TYPE = 1, 2, 4, 5, 6, 10, 14
TYPES = (("stall", "nanoseconds"), ("spin", "nanoseconds"), ("transactions", "count"))
VARINT, BYTES = 0, 2  # wire types


def varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def number(field: int, value: int) -> bytes:
    return varint(field << 3 | VARINT) + varint(value) if value else b""


def message(field: int, content: bytes) -> bytes:
    return varint(field << 3 | BYTES) + varint(len(content)) + content


def packed(field: int, values: Iterable[int]) -> bytes:
    return message(field, b"".join(varint(value) for value in values))


class Profile:
    """The tables that a profile refers to by number."""

    def __init__(self) -> None:
        self.body = b""
        self._strings = {"": 0}
        self._functions: dict[tuple[str, str], int] = {}
        self._locations: dict[tuple[Frame, ...], int] = {}
        self._parts: list[bytes] = []

    def string(self, text: str) -> int:
        return self._strings.setdefault(text, len(self._strings))

    def function(self, name: str, file: str) -> int:
        if (name, file) not in self._functions:
            self._functions[name, file] = n = len(self._functions) + 1
            self._parts.append(message(FUNCTION, number(1, n) + number(2, self.string(name)) + number(3, self.string(name))
                                       + number(4, self.string(file))))
        return self._functions[name, file]

    def location(self, inlined: tuple[Frame, ...]) -> int:
        """One instruction: its frames, innermost first."""
        if inlined not in self._locations:
            self._locations[inlined] = n = len(self._locations) + 1
            lines = b"".join(message(4, number(1, self.function(f.function, f.file)) + number(2, f.line)) for f in inlined)
            self._parts.append(message(LOCATION, number(1, n) + lines))
        return self._locations[inlined]

    def sample(self, stack: Stack) -> None:
        places = (self.location((Frame(f"[{stack.name}]"),)), self.location(tuple(reversed(stack.frames))))
        values = (round(stack.stall / FS_PER_NS), round(stack.spin / FS_PER_NS), stack.count)
        labels = b"".join(message(3, number(1, self.string(key)) + number(2, self.string(text)))
                          for key, text in (("line", stack.name), ("mode", "kernel" if stack.kernel else "user")))
        self._parts.append(message(SAMPLE, packed(1, places) + packed(2, values) + labels))

    def encoded(self, duration: int) -> bytes:
        types = b"".join(message(SAMPLE_TYPE, number(1, self.string(kind)) + number(2, self.string(unit))) for kind, unit in TYPES)
        rest = number(DURATION, duration) + number(DEFAULT_TYPE, self.string(TYPES[0][0]))
        strings = b"".join(message(STRINGS, text.encode()) for text in self._strings)
        return types + b"".join(self._parts) + rest + strings


def profile(p: Point) -> bytes:
    made = Profile()
    for stack in stacks(p):
        made.sample(stack)
    return made.encoded(p.window_fs // FS_PER_NS)


def _files(p: Point, _: Slice) -> dict[str, bytes]:
    return {"pprof.pb.gz": gzip.compress(profile(p), mtime=0)}


EXPORT = Export("A profile for pprof: stall, spinning and transactions by function, source line and line of memory.", _files)
