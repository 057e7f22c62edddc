# SPDX-License-Identifier: BSD-3-Clause
"""Parsing: files to declarations, includes spliced in. The parser goes on after an error at the next statement, parameter or
declaration, so that one run reports many. An include is looked for beside the including file, then beside the protocol; but
`RubySlicc_interfaces.slicc` is always our prelude, even when the protocol lies in gem5's own folder."""
from __future__ import annotations

import functools
import os
from typing import Any, Iterator, Optional

from lark import Lark, Token
from lark.exceptions import UnexpectedCharacters, UnexpectedInput, UnexpectedToken
from lark.parsers.lalr_analysis import Shift

from . import ast
from .ast import Loc
from .build import Builder, TooDeep
from .errors import Diagnostics, Stop, at_start, describe

HERE = os.path.dirname(os.path.abspath(__file__))
PRELUDE = os.path.join(HERE, "prelude")
INTERFACES = "RubySlicc_interfaces.slicc"
MAX_NESTING = 100
MAX_INCLUDE_DEPTH = 20
MAX_FILE_BYTES = 8 << 20

_DECLARATION = {"PROTOCOL", "INCLUDE", "GLOBAL", "MACHINE", "IN_PORT", "OUT_PORT", "ACTION", "TRANSITION", "STRUCTURE",
                "EXTERNAL_TYPE", "ENUMERATION", "STATE_DECLARATION"}
_OPENING = {"LPAR", "LSQB", "LBRACE"}
_CLOSING = {"RPAR", "RSQB", "RBRACE"}
_READABLE = {"IDENT": "a name", "NUMBER": "a number", "FLOAT": "a number", "STRING": "a string", "BOOL": "true or false",
             "$END": "the end of the file"}


@functools.cache
def _grammar() -> tuple[Lark, Builder]:
    """The parser and its builder, made once (80 ms). Not to be shared between threads: the builder knows the file."""
    builder = Builder()
    with open(os.path.join(HERE, "grammar.lark"), encoding="utf-8") as file:
        lark = Lark(file.read(), parser="lalr", lexer="basic", maybe_placeholders=True, transformer=builder)
    return lark, builder


class _FileParser:
    """One run over one file."""

    def __init__(self, name: str, text: str, diagnostics: Diagnostics) -> None:
        self.name = name
        self.text = text
        self.diagnostics = diagnostics
        self.lark, self.builder = _grammar()
        self.builder.file = name
        self.interactive: Any = self.lark.parse_interactive(text)
        self.state = self.interactive.parser_state
        self.table = self.state.parse_conf.parse_table.states
        self.skipping: Optional[int] = None  # after an error: the depth of braces at which parsing can go on
        self.fresh = True  # a token was accepted since the last error, so the next error is not its echo

    def run(self) -> list[ast.Node]:
        """The file's declarations; those with errors are left out, and the errors reported."""
        try:
            last = self._feed_all()
            end = Token("$END", "", 0, 1, 1) if last is None else Token.new_borrow_pos("$END", "", last)
            return [] if self.skipping is not None else self.state.feed_token(end, True)
        except UnexpectedToken:
            last_line = self.text.count("\n") + 1
            self.diagnostics.error(Loc(self.name, last_line, len(self.text) - self.text.rfind("\n")),
                                   f"the file ends in the middle of a declaration{self._expected()}")
            return []
        except TooDeep as deep:
            self.diagnostics.error(deep.loc, "expression nested too deeply")
            raise Stop from None

    def _feed_all(self) -> Optional[Token]:
        """Gives the parser all tokens; returns the last."""
        depth = 0  # of braces, kept while skipping only
        nesting = 0
        token: Optional[Token] = None
        previous = ""
        for token in self._tokens():
            kind = token.type
            if kind in _OPENING:
                nesting += 1
                if nesting > MAX_NESTING:
                    self.diagnostics.error(self._loc(token), f"nested deeper than {MAX_NESTING} brackets")
                    raise Stop
            elif kind in _CLOSING:
                nesting = max(0, nesting - 1)
            if self.skipping is not None:
                depth = self._skip(token, depth, previous)
            else:
                try:
                    self.state.feed_token(token)
                    self.fresh = True
                except UnexpectedToken:
                    depth = self._recover(token)
            previous = kind
        return token

    def _skip(self, token: Token, depth: int, previous: str) -> int:
        """While skipping: goes on with this token if that can be, otherwise drops it; returns the depth of braces."""
        kind = token.type
        if kind == "RBRACE" and depth > (self.skipping or 0):
            return depth - 1
        boundary = kind in _DECLARATION or kind == "RBRACE" or (
            depth == self.skipping and (previous in ("SEMICOLON", "RBRACE") or kind == "LBRACE" and self._takes(kind)))
        if boundary and self._resume(token):
            self.skipping = None
            return depth
        return depth + (kind == "LBRACE")

    def _recover(self, token: Token) -> int:
        """After an error: reports it, drops what is unfinished, and starts to skip unless this very token is where parsing can go on."""
        if self.fresh:
            self._report(token)
        self.fresh = False
        depth = self._braces()
        self.skipping = self._find_context()
        kind = token.type
        if (kind in _DECLARATION or kind == "RBRACE" and depth == self.skipping) and self._resume(token):
            self.fresh = kind in _DECLARATION
            self.skipping = None
            return depth
        return depth + {"LBRACE": 1, "RBRACE": -1}.get(kind, 0)

    def _tokens(self) -> Iterator[Token]:
        """The file's tokens; what is none is reported and skipped."""
        thread = self.interactive.lexer_thread
        while True:
            try:
                yield from thread.lex(self.state)
                return
            except UnexpectedCharacters as bad:
                position = bad.pos_in_stream or 0
                character = self.text[position]
                end = position + 1
                if character in "\"'":
                    message = "string is not closed on its line"
                    end = self.text.find("\n", position)
                    end = len(self.text) if end < 0 else end
                else:
                    message = f"character {character!r} has no meaning in SLICC"
                    while end < len(self.text) and self.text[end] == character:
                        end += 1
                self.diagnostics.error(Loc(self.name, bad.line, bad.column), message)
                self.fresh = False
                counter = thread.state.line_ctr
                counter.feed(self.text[position:end])

    # ---- going on after an error: the parser's own stack tells where it may

    def _braces(self) -> int:
        return sum(1 for value in self.state.value_stack if isinstance(value, Token) and value.type == "LBRACE")

    def _find_context(self) -> int:
        """Drops the unfinished statement, parameter or declaration; returns the depth of braces around it."""
        states, values = self.state.state_stack, self.state.value_stack
        while len(states) > 1 and not self._is_context(states[-1], values[-1]):
            states.pop()
            values.pop()
        return self._braces()

    def _is_context(self, state: Any, value: Any) -> bool:
        """Whether a declaration, a statement, a value of an enumeration or a parameter can begin in a state; `value` is what was read
        last. A transition's lists look like parameters but for the bracket or comma before them."""
        row = self.table[state]
        shifts = {kind for kind in ("ACTION", "PEEK", "IDENT") if kind in row and row[kind][0] is Shift}
        if "ACTION" in shifts or "PEEK" in shifts:
            return True
        if "IDENT" not in shifts or "SEMICOLON" in row:
            return False
        inner = isinstance(value, Token) and value.type in ("LPAR", "RPAR", "COMMA")
        return "RBRACE" in row or "LBRACE" in row and not inner

    def _takes(self, kind: str) -> bool:
        return kind in self.table[self.state.state_stack[-1]]

    def _resume(self, token: Token) -> bool:
        """Drops contexts until one can go on with this token, and gives it the token; False, and nothing dropped, if none can. A row
        of the table may list a token for a reduction after which it turns out to be wrong, so each context is tried."""
        states, values = list(self.state.state_stack), list(self.state.value_stack)
        for size in range(len(states), 0, -1):
            if self._is_context(states[size - 1], values[size - 2] if size > 1 else None) and token.type in self.table[states[size - 1]]:
                self.state.state_stack[:] = states[:size]
                self.state.value_stack[:] = values[:size - 1]
                try:
                    self.state.feed_token(token)
                    return True
                except UnexpectedToken:
                    continue
        self.state.state_stack[:] = states
        self.state.value_stack[:] = values
        return False

    # ---- messages

    def _loc(self, token: Token) -> Loc:
        return Loc(self.name, token.line or 0, token.column or 0)

    def _report(self, token: Token) -> None:
        loc = self._loc(token)
        position = token.start_pos or 0
        if token.type == "SLASH" and self.text.startswith("/*", position):
            self.diagnostics.error(loc, "comment is not closed")
            raise Stop
        hint = ""
        if token.type == "EQUAL":
            hint = "; an assignment is written ':='"
        elif token.type == "IDENT" and (following := self.text[position + len(token):position + len(token) + 1]) == "'":
            hint = f" before {following}"
        self.diagnostics.error(loc, f"unexpected {self._readable(token)}{hint or self._expected()}")

    def _readable(self, token: Token) -> str:
        text = str(token)
        text = text if len(text) <= 40 else text[:37] + "..."
        if token.type in ("IDENT", "NUMBER", "FLOAT"):
            return f"'{text}'"
        return f"word '{text}'" if text.isidentifier() else f"'{text}'" if token.type != "STRING" else f"string {text}"

    def _expected(self) -> str:
        """What could have come, if that is few things."""
        patterns = {terminal.name: terminal.pattern.value for terminal in self.lark.terminals}
        kinds: set[str] = self.interactive.accepts() if len(self.state.state_stack) < 1000 else set()
        if not kinds or len(kinds) > 6:
            return ""
        return "; expected " + describe(sorted({_READABLE.get(kind, f"'{patterns.get(kind, kind)}'") for kind in kinds}))


def parse_text(name: str, text: str, diagnostics: Diagnostics) -> list[ast.Node]:
    """The declarations of one source text, includes not followed."""
    diagnostics.add_source(name, text)
    return _FileParser(name, text, diagnostics).run()


def parse_expression(text: str, loc: Loc) -> Optional[ast.Expr]:
    """An expression of one line, as found in a `default=` or `constructor=` pair; None when it is none in SLICC."""
    lark, builder = _grammar()
    saved, builder.file = builder.file, loc.file
    try:
        decls: Any = lark.parse(f"int x := {text};")
    except (UnexpectedInput, TooDeep):
        return None
    finally:
        builder.file = saved
    return decls[0].init if len(decls) == 1 else None


def read_source(path: str, blame: Loc, diagnostics: Diagnostics) -> Optional[str]:
    """The text of a file, or None after reporting at `blame` why it cannot be had."""
    try:
        if os.path.getsize(path) > MAX_FILE_BYTES:
            diagnostics.error(blame, f"'{path}' is larger than {MAX_FILE_BYTES >> 20} MiB, which no protocol is")
            return None
        with open(path, "rb") as file:
            data = file.read()
    except OSError as problem:
        diagnostics.error(blame, f"cannot read '{path}': {problem.strerror or problem}")
        return None
    return data.decode("utf-8", errors="replace").lstrip("\ufeff")


class _Loader:
    """Follows includes, depth first."""

    def __init__(self, diagnostics: Diagnostics, base: str) -> None:
        self.diagnostics = diagnostics
        self.base = base
        self.files: list[str] = []
        self.protocol: Optional[ast.ProtocolDecl] = None

    def load(self, path: str, blame: Loc, stack: tuple[str, ...]) -> list[ast.Node]:
        real = os.path.realpath(path)
        if real in stack:
            self.diagnostics.error(blame, f"'{os.path.basename(path)}' includes itself")
            return []
        if len(stack) >= MAX_INCLUDE_DEPTH:
            self.diagnostics.error(blame, f"includes nested deeper than {MAX_INCLUDE_DEPTH}")
            raise Stop
        text = read_source(path, blame, self.diagnostics)
        if text is None:
            return []
        self.files.append(path)
        decls: list[ast.Node] = []
        for decl in parse_text(path, text, self.diagnostics):
            if isinstance(decl, ast.Include):
                decls.extend(self.load(self._find(decl.path, path), decl.loc, stack + (real,)))
            elif isinstance(decl, ast.ProtocolDecl):
                if self.protocol is not None:
                    self.diagnostics.error(decl.loc, f"the protocol has already been named '{self.protocol.name}'")
                else:
                    self.protocol = decl
            else:
                decls.append(decl)
                if isinstance(decl, ast.Machine):
                    decl.decls = self._splice(decl.decls, path, stack + (real,))
        return decls

    def _splice(self, decls: list[ast.Node], path: str, stack: tuple[str, ...]) -> list[ast.Node]:
        """Includes within a machine's body."""
        spliced: list[ast.Node] = []
        for decl in decls:
            if isinstance(decl, ast.Include):
                spliced.extend(self.load(self._find(decl.path, path), decl.loc, stack))
            else:
                spliced.append(decl)
        return spliced

    def _find(self, name: str, includer: str) -> str:
        if name == INTERFACES:
            return os.path.join(PRELUDE, name)
        beside = os.path.join(os.path.dirname(includer), name)
        elsewhere = os.path.join(self.base, name)
        return elsewhere if os.path.isfile(elsewhere) and not os.path.isfile(beside) else beside


def parse_protocol(path: str, diagnostics: Diagnostics) -> ast.Program:
    """Parses a protocol and all that it includes. Raises Stop after reporting errors."""
    start = at_start(path)
    loader = _Loader(diagnostics, os.path.dirname(path))
    decls = loader.load(path, start, ())
    diagnostics.stop_on_error()
    if loader.protocol is None:
        diagnostics.error(start, 'no protocol is named: the file should start with protocol "NAME";')
        raise Stop
    if not loader.protocol.name.isidentifier() or not loader.protocol.name.isascii():
        diagnostics.error(loader.protocol.loc, f"protocol name '{loader.protocol.name}' is not an identifier")
        raise Stop
    return ast.Program(loc=loader.protocol.loc, name=loader.protocol.name, decls=decls, files=loader.files)
