# SPDX-License-Identifier: BSD-3-Clause
"""The script of `moscope trace`: text to accesses.

    script   ::=  step { ";" step }          a step begins when the one before is complete
    step     ::=  access { "|" access }      accesses of a step are issued at the same time, or each at its own
    access   ::=  WHO  OP  ADDR  [ "at" TIME ]  { DELAY }
    WHO      ::=  "c" CORE | "d" DEVICE      a device takes ld and st alone
    OP       ::=  ld, st, if, rmw, flush, nt, ldu
    ADDR     ::=  PLACE [ "+" OFFSET ] [ ":" BYTES ]
    PLACE    ::=  NUMBER | LETTER "@n" NODE  a physical address, or a line of one's own homed at a node
    TIME     ::=  NUMBER UNIT                fs, ps, ns, us, or cy: core cycles; after the beginning of the step
    DELAY    ::=  MESSAGE [ "#" N ] ">" CONTROLLER "+" TIME
                  the N-th message of this name (counted from 0) that the access sends to this controller arrives so much later

A mistake is a UserError that shows the script with a caret under what is wrong.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import NoReturn

from moscope.config import Machine
from moscope.errors import UserError
from moscope.schema.constants import LINE

OPS = {"ld": "load", "st": "store", "if": "instruction fetch", "rmw": "locked read-modify-write", "flush": "flush",
       "nt": "non-temporal store", "ldu": "uncached load"}
CACHED_OPS = [op for op in OPS if op not in ("nt", "ldu")]  # the operations that gem5's ports support
WORD_BYTES = 8
# Lines named by letters lie side by side from here on in their node's memory: different sets of every cache.
LETTERS_AT = 0x10000
LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

EXAMPLE = "c0 ld A@n0; c1 st A@n0 | c2 ld B@n1"
WORD = re.compile(r"[;|]|[^\s;|]+")
NAMED = re.compile(r"([A-Za-z])@n(\d+)")
PARTS = re.compile(r"([^+:]+)(?:\+([^+:]+))?(?::([^+:]+))?")
TIME = re.compile(r"(\d+(?:\.\d+)?)(fs|ps|ns|us|cy)")
DELAYED = re.compile(r"(\w+)(?:#(\d{1,4}))?>(\w+-\d+)\+(.+)")
UNITS = {"fs": 1, "ps": 10**3, "ns": 10**6, "us": 10**9}


@dataclass(frozen=True)
class MessageDelay:
    """The `n`-th message of this name that an access sends to a controller arrives `fs` later."""

    message: str
    to: str
    n: int
    fs: int

    @property
    def text(self) -> str:
        """As a script has it, less the time."""
        return f"{self.message}{f'#{self.n}' if self.n else ''}>{self.to}"


@dataclass(frozen=True)
class ScriptAccess:
    """One access; `name` is its address as text shows it. `core` of a device's access is the device's number."""

    core: int
    op: str
    address: int
    name: str
    size: int | None = None  # bytes; None: a word, or the rest of the line if it is shorter
    at: int = 0  # fs after the beginning of the step
    delays: tuple[MessageDelay, ...] = ()
    device: bool = False

    @property
    def bytes(self) -> int:
        return min(WORD_BYTES, LINE - self.address % LINE) if self.size is None else self.size

    @property
    def text(self) -> str:
        size = f":{self.size}" if self.size is not None else ""
        return f"{'d' if self.device else 'c'}{self.core} {self.op} {self.name}{size}"


def place_name(address: int, node_bytes: int) -> str:
    """`A@n7+8` for an address that a letter can name, otherwise the number."""
    node, at = divmod(address, node_bytes)
    line, offset = divmod(at - min(LETTERS_AT, node_bytes // 2), LINE)
    if not 0 <= line < len(LETTERS):
        return f"{address:#x}"
    return f"{LETTERS[line]}@n{node}" + (f"+{offset}" if offset else "")


@dataclass(frozen=True)
class Word:
    text: str
    at: int


class _Parser:
    def __init__(self, script: str, cores: int, memory: list[tuple[int, int]], ops: Sequence[str], cycle: Fraction) -> None:
        self.script = script
        self.ops = ops
        self.cores = cores
        self.memory = memory
        self.cycle = cycle
        self.words = [Word(m.group(), m.start()) for m in WORD.finditer(script)]
        self.position = 0

    def fail(self, word: Word | None, wrong: str, right: str) -> NoReturn:
        """Raises UserError with a caret at `word`, or after the end."""
        at, length = (word.at, len(word.text)) if word else (len(self.script.rstrip()), 1)
        # Show the one line of the script that the place is in.
        begin = self.script.rfind("\n", 0, at) + 1
        line = self.script[begin:].split("\n", 1)[0].replace("\t", " ")
        raise UserError(f"trace script: {wrong}: expected {right}\n  {line}\n  {' ' * (at - begin)}{'^' * max(1, length)}")

    def take(self) -> Word | None:
        if self.position == len(self.words):
            return None
        self.position += 1
        return self.words[self.position - 1]

    def peek(self) -> str:
        return self.words[self.position].text if self.position < len(self.words) else ";"

    def parse(self) -> list[list[ScriptAccess]]:
        if not self.words:
            self.fail(None, "no accesses", f"something like {EXAMPLE!r}")
        steps: list[list[ScriptAccess]] = [[]]
        while True:
            steps[-1].append(self.access())
            word = self.take()
            if word is None:
                return steps
            if word.text == ";":
                if self.position == len(self.words):
                    return steps  # a semicolon may also end the last step
                steps.append([])
            elif word.text != "|":
                self.fail(word, f'"{word.text}" after a complete access', '";" or "|" comes between two accesses')

    def access(self) -> ScriptAccess:
        who, device = self.who(self.take())
        op = self.op(self.take(), device)
        word = self.take()
        if word is None or word.text in ";|":
            self.fail(word, "the address is missing", "a number, or a line such as A@n0")
        address, size = self.address(word)
        at = 0
        if self.peek() == "at":
            self.take()
            at = self.time(self.take())
        delays = []
        while ">" in self.peek():
            delays.append(self.delay(self.words[self.position]))
            self.take()
        return ScriptAccess(who, op, address, place_name(address, self.memory[0][1]), size, at, tuple(delays), device)

    def who(self, word: Word | None) -> tuple[int, bool]:
        if word is None or word.text in ";|":
            self.fail(word, "an access is missing", "cCORE OP ADDR, such as c0 ld A@n0")
        match = re.fullmatch(r"([cd])(\d{1,9})", word.text)
        if match is None:
            self.fail(word, f'"{word.text}" is not a core', f"c and a number, c0 to c{self.cores - 1}")
        number, device = int(match.group(2)), match.group(1) == "d"
        if device and number >= len(self.memory):
            self.fail(word, f"the machine has no device {number}", f"d0 to d{len(self.memory) - 1}")
        if not device and number >= self.cores:
            self.fail(word, f"the machine has no core {number}", f"c0 to c{self.cores - 1}")
        return number, device

    def op(self, word: Word | None, device: bool) -> str:
        known = [op for op in self.ops if not device or op in ("ld", "st")]
        names = ", ".join(known)
        if word is None or word.text in ";|":
            self.fail(word, "the operation is missing", f"one of {names}")
        if word.text not in known:
            self.fail(word, f'no operation called "{word.text}"', f"one of {names}")
        return word.text

    def time(self, word: Word | None) -> int:
        match = TIME.fullmatch(word.text) if word else None
        if match is None:
            self.fail(word, f'"{word.text if word else ""}" is not a time', "a number with fs, ps, ns, us, or cy for core cycles")
        amount, unit = Fraction(match.group(1)), match.group(2)
        return int(amount * self.cycle) if unit == "cy" else int(amount * UNITS[unit])

    def delay(self, word: Word) -> MessageDelay:
        match = DELAYED.fullmatch(word.text)
        if match is None:
            self.fail(word, f'"{word.text}" is not a delay', "MESSAGE>CONTROLLER+TIME, such as Inv>L1Cache-1+40ns")
        return MessageDelay(match.group(1), match.group(3), int(match.group(2) or 0), self.time(Word(match.group(4), word.at)))

    def address(self, word: Word) -> tuple[int, int | None]:
        parts = PARTS.fullmatch(word.text)
        if parts is None:
            self.fail(word, f'"{word.text}" is not an address', "a number, or a line such as A@n0, with +OFFSET and :BYTES")
        place, offset, size = parts.groups()
        named = NAMED.fullmatch(place)
        address = self.letter(word, named.group(1), named.group(2)) if named else self.number(word, place)
        if offset is not None:
            most = LINE - 1 if named else 1 << 48
            address += self.within(word, "offset", offset, 0, most)
        if not any(base <= address < base + size_ for base, size_ in self.memory):
            end = max(base + size_ for base, size_ in self.memory)
            self.fail(word, f"no memory at {address:#x}", f"an address below {end:#x}")
        if size is None:
            return address, None
        return address, self.within(word, "size", size, 1, LINE - address % LINE)

    def within(self, word: Word, what: str, text: str, least: int, most: int) -> int:
        try:
            value = int(text, 0)
        except ValueError:
            value = -1
        if not least <= value <= most:
            self.fail(word, f'{what} "{text}"', f"{least} to {most} bytes")
        return value

    def letter(self, word: Word, letter: str, number: str) -> int:
        node = int(number) if len(number) < 10 else len(self.memory)
        if node >= len(self.memory):
            self.fail(word, f"the machine has no node {number}", f"n0 to n{len(self.memory) - 1}")
        base, size = self.memory[node]
        return base + min(LETTERS_AT, size // 2) + LINE * LETTERS.index(letter)

    def number(self, word: Word, place: str) -> int:
        try:
            address = int(place, 0)
        except ValueError:
            address = -1
        if address < 0:
            if re.fullmatch(r"[A-Za-z]", place):
                self.fail(word, f"line {place} without a node", f"{place}@n0 to {place}@n{len(self.memory) - 1}")
            self.fail(word, f'"{word.text}" is not an address', "a number, or a line such as A@n0")
        return address


def parse(script: str, machine: Machine, ops: Sequence[str] = tuple(OPS)) -> list[list[ScriptAccess]]:
    """The steps of the script, each a list of accesses that are issued at the same time; `ops` are those it may have."""
    size = machine.memory_per_node.bytes
    return _Parser(script, machine.cores, [(n * size, size) for n in range(int(machine.chips))], ops,
                   Fraction(machine.core_clock.period)).parse()
