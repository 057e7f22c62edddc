# SPDX-License-Identifier: BSD-3-Clause
"""The script of `moscope trace`: text to accesses.

    script   ::=  step { ";" step }          a step begins when the one before is complete
    step     ::=  access { "|" access }      accesses of a step are issued at the same time
    access   ::=  "c" CORE  OP  ADDR         OP: ld, st, if, rmw, flush, nt, ldu
    ADDR     ::=  NUMBER | LETTER "@n" NODE  a physical address, or a line of one's own homed at a node

A mistake is a UserError that shows the script with a caret under what is wrong.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NoReturn

from moscope.config import Machine
from moscope.errors import UserError, nearest

OPS = {"ld": "load", "st": "store", "if": "instruction fetch", "rmw": "locked read-modify-write", "flush": "flush",
       "nt": "non-temporal store of a word", "ldu": "uncached load"}
CACHED_OPS = [op for op in OPS if op not in ("nt", "ldu")]  # all that gem5's ports have
LINE = 64
# Lines named by letters lie side by side from here on in their node's memory: different sets of every cache.
LETTERS_AT = 0x10000
LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

EXAMPLE = "c0 ld A@n0; c1 st A@n0 | c2 ld B@n1"
WORD = re.compile(r"[;|]|[^\s;|]+")
NAMED = re.compile(r"([A-Za-z])@n(\d+)")


@dataclass(frozen=True)
class ScriptAccess:
    """One access; `name` is how the script writes its address."""

    core: int
    op: str
    address: int
    name: str

    @property
    def text(self) -> str:
        return f"c{self.core} {self.op} {self.name}"


@dataclass(frozen=True)
class Word:
    text: str
    at: int


class _Parser:
    def __init__(self, script: str, cores: int, memory: list[tuple[int, int]], ops: Sequence[str]) -> None:
        self.script = script
        self.ops = ops
        self.cores = cores
        self.memory = memory
        self.words = [Word(m.group(), m.start()) for m in WORD.finditer(script)]
        self.position = 0

    def fail(self, word: Word | None, wrong: str, right: str) -> NoReturn:
        """Points at `word`, or behind the end."""
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
        core = self.core(self.take())
        op = self.op(self.take())
        word = self.take()
        if word is None or word.text in ";|":
            self.fail(word, "the address is missing", "a number, or a line such as A@n0")
        return ScriptAccess(core, op, self.address(word), word.text)

    def core(self, word: Word | None) -> int:
        if word is None or word.text in ";|":
            self.fail(word, "an access is missing", "cCORE OP ADDR, such as c0 ld A@n0")
        match = re.fullmatch(r"c(\d{1,9})", word.text)
        if match is None:
            self.fail(word, f'"{word.text}" is no core', f"c and a number, c0 to c{self.cores - 1}")
        core = int(match.group(1))
        if core >= self.cores:
            self.fail(word, f"the machine has no core {core}", f"c0 to c{self.cores - 1}")
        return core

    def op(self, word: Word | None) -> str:
        names = ", ".join(self.ops)
        if word is None or word.text in ";|":
            self.fail(word, "the operation is missing", f"one of {names}")
        if word.text not in self.ops:
            close = nearest(word.text, self.ops)
            self.fail(word, f'no operation called "{word.text}"', f"a known operation, such as {close[0]}" if close else f"one of {names}")
        return word.text

    def address(self, word: Word) -> int:
        named = NAMED.fullmatch(word.text)
        if named:
            node = int(named.group(2)) if len(named.group(2)) < 10 else len(self.memory)
            if node >= len(self.memory):
                self.fail(word, f"the machine has no node {named.group(2)}", f"n0 to n{len(self.memory) - 1}")
            base, size = self.memory[node]
            offset = min(LETTERS_AT, size // 2) + LINE * LETTERS.index(named.group(1))
            return base + offset
        try:
            address = int(word.text, 0)
        except ValueError:
            address = -1
        if address < 0:
            if re.fullmatch(r"[A-Za-z]", word.text):
                self.fail(word, f"line {word.text} of which node?", f"{word.text}@n0 to {word.text}@n{len(self.memory) - 1}")
            self.fail(word, f'"{word.text}" is no address', "a number, or a line such as A@n0")
        if not any(base <= address < base + size for base, size in self.memory):
            end = max(base + size for base, size in self.memory)
            self.fail(word, f"no memory at {address:#x}", f"an address below {end:#x}")
        return address


def parse(script: str, machine: Machine, ops: Sequence[str] = tuple(OPS)) -> list[list[ScriptAccess]]:
    """The steps of the script, each a list of accesses that are issued at the same time; `ops` are those it may have."""
    size = machine.memory_per_node.bytes
    return _Parser(script, machine.cores, [(n * size, size) for n in range(int(machine.chips))], ops).parse()
