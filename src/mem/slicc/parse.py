# SPDX-License-Identifier: BSD-3-Clause
"""Parsing: files to declarations, includes spliced in. After an error the parser resumes at the next statement, parameter or
declaration, so that one run reports many errors. An include is searched in the folder of the including file, then in that of
the protocol; but `RubySlicc_interfaces.slicc` is always moscope's prelude, even when the protocol lies in gem5's own folder."""
from __future__ import annotations

import functools
import os
import pickle
import re
from collections.abc import Iterator
from typing import Any

from lark import Lark, Token
from lark.exceptions import UnexpectedCharacters, UnexpectedInput, UnexpectedToken
from lark.parsers.lalr_analysis import Shift

from . import ast
from .ast import Loc
from .build import MAX_EXPRESSION_DEPTH, Builder, TooDeep
from .errors import Diagnostics, Stop, at_start, expected

HERE = os.path.dirname(os.path.abspath(__file__))
PRELUDE = os.path.join(HERE, "prelude")
INTERFACES = "RubySlicc_interfaces.slicc"
MORE_PRELUDE, HEADER = ".prelude.sm", ".hh"
"""Suffixes of files beside NAME.slicc: declarations that every file of the protocol may use, and C++ for functions and types
without a body."""
MAX_NESTING = 100
MAX_INCLUDE_DEPTH = 20
MAX_FILE_BYTES = 8 << 20

_OLD_SYNTAX = (
    (r"\blatency\s*=$", "the latency as an expression: enqueue(port, Msg, 2)"),
    (r"\bmachine\(\s*\w+\s*,$", "the type before the name: machine(MachineType:L1Cache, \"..\")"),
)
"""Text before a token at which the parser fails in protocols for older versions of gem5, and the syntax that replaced it."""

_LOOP = re.compile(r"(?:^|[;{}])[ \t]*(while|for)\s*\([^;{}]*\Z", re.MULTILINE)
"""At the start of a statement: a comment or a text may have the words, too."""
_STEPS = {"INCREMENT": "+", "DECREMENT": "-"}
_TARGET = re.compile(r"[A-Za-z_][\w.]*$")

_DECLARATION = {"PROTOCOL", "INCLUDE", "GLOBAL", "MACHINE", "IN_PORT", "OUT_PORT", "ACTION", "TRANSITION", "STRUCTURE",
                "EXTERNAL_TYPE", "ENUMERATION", "STATE_DECLARATION"}
_OPENING = {"LPAR", "LSQB", "LBRACE"}
_CLOSING = {"RPAR", "RSQB", "RBRACE"}
_READABLE = {"IDENT": "a name", "NUMBER": "a number", "FLOAT": "a number", "STRING": "a string", "BOOL": "true or false",
             "$END": "the end of the file"}
_EXPRESSION = {"IDENT", "NUMBER", "FLOAT", "STRING", "BOOL", "OOD", "NEW", "NOT", "DASH", "INCREMENT", "DECREMENT", "STATIC_CAST",
               "IS_VALID", "IS_INVALID", "LPAR"}
_GROUPS = {
    "a declaration": _DECLARATION | {"IDENT", "VOID"},
    "a statement": _EXPRESSION | {"PEEK", "ENQUEUE", "DEFER_ENQUEUEING", "STALL_AND_WAIT", "WAKEUP_PORT", "CHECK_ALLOCATE",
                                  "CHECK_NEXT_CYCLE", "CHECK_STOP_SLOTS", "CHECK_ON_CACHE_PROBE", "RETURN", "IF"},
    "an expression": _EXPRESSION,
    "an operator": {"EQ", "NE", "LE", "GE", "LT", "GT", "LEFTSHIFT", "RIGHTSHIFT", "AND", "OR", "PLUS", "DASH", "STAR", "SLASH",
                    "PERCENT"},
}
"""The words of error messages for groups of terminals that the parser accepts at one place."""


@functools.cache
def _grammar() -> tuple[Lark, Builder]:
    """The parser and its builder, made once (80 ms). Threads must not share them: the builder holds the name of the file."""
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
        self.skipping: int | None = None  # after an error: the depth of braces at which parsing can resume
        self.fresh = True  # a token was accepted since the last error, so the next error does not follow from it
        self.headless = False  # the header of a machine had an error, so the braces of its body follow no machine

    def run(self) -> list[ast.Node]:
        """The file's declarations; those with errors are left out, and the errors reported."""
        try:
            last = self._feed_all()
            end = Token("$END", "", 0, 1, 1) if last is None else Token.new_borrow_pos("$END", "", last)
            return [] if self.skipping is not None else self.state.feed_token(end, True)
        except UnexpectedToken:
            last_line = self.text.count("\n") + 1
            self.diagnostics.error(Loc(self.name, last_line, len(self.text) - self.text.rfind("\n")),
                                   f"file: ends within a declaration{self._expected()}")
            return []
        except TooDeep as deep:
            self.diagnostics.error(deep.loc, f"expression: nested deeper than {MAX_EXPRESSION_DEPTH}: expected a simpler one")
            raise Stop from None

    def _feed_all(self) -> Token | None:
        """Gives the parser all tokens; returns the last."""
        depth = 0  # of braces, kept while skipping only
        nesting = 0
        token: Token | None = None
        previous = ""
        for token in self._tokens():
            kind = token.type
            if kind in _OPENING:
                nesting += 1
                if nesting > MAX_NESTING:
                    self.diagnostics.error(self._loc(token), f"bracket: nested deeper than {MAX_NESTING}: expected fewer levels")
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
        """While skipping: resumes with this token if possible, otherwise drops it; returns the depth of braces."""
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
        """After an error: reports it, drops what is unfinished, and skips unless parsing can resume with this very token."""
        if self.fresh:
            self._report(token)
        self.fresh = False
        depth = self._braces()
        machines = self._open("MACHINE")
        self.skipping = self._find_context()
        self.headless |= self._open("MACHINE") < machines
        kind = token.type
        if (kind in _DECLARATION or kind == "RBRACE" and depth == self.skipping) and self._resume(token):
            self.fresh = kind in _DECLARATION
            self.skipping = None
            return depth
        return depth + {"LBRACE": 1, "RBRACE": -1}.get(kind, 0)

    def _tokens(self) -> Iterator[Token]:
        """The file's tokens; reports and skips text that is not a token."""
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
                    message = "string: not closed on its line: expected the closing quote"
                    end = self.text.find("\n", position)
                    end = len(self.text) if end < 0 else end
                else:
                    message = f"character {character!r}: not in the language: expected a name, number, string or operator"
                    while end < len(self.text) and self.text[end] == character:
                        end += 1
                self.diagnostics.error(Loc(self.name, bad.line, bad.column), message)
                self.fresh = False
                counter = thread.state.line_ctr
                counter.feed(self.text[position:end])

    # ---- resuming after an error: the parser's own stack shows where it can

    def _open(self, kind: str) -> int:
        return sum(1 for value in self.state.value_stack if isinstance(value, Token) and value.type == kind)

    def _braces(self) -> int:
        return self._open("LBRACE")

    def _find_context(self) -> int:
        """Drops the unfinished statement, parameter or declaration; returns the depth of braces around it."""
        states, values = self.state.state_stack, self.state.value_stack
        while len(states) > 1 and not self._is_context(states[-1], values[-1]):
            states.pop()
            values.pop()
        return self._braces()

    def _is_context(self, state: Any, value: Any) -> bool:
        """Whether a declaration, a statement, a value of an enumeration or a parameter can begin in a state; `value` is what was
        read last. A transition's lists differ from parameters only in the bracket or comma before them."""
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
        """Drops contexts until one accepts this token, and gives it the token; False, and nothing dropped, if none does. A row of
        the table may list a token for a reduction after which it is an error, so each context is tried."""
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
        if self.headless and token.type in ("LBRACE", "RBRACE") and not self._braces():
            self.headless = token.type == "LBRACE"
            return
        loc = self._loc(token)
        position = token.start_pos or 0
        if token.type == "SLASH" and self.text.startswith("/*", position):
            self.diagnostics.error(loc, "comment: not closed: expected '*/'")
            raise Stop
        before = self.text[max(0, position - 80):position]
        old = next((hint for pattern, hint in _OLD_SYNTAX if re.search(pattern, before + token)), None)
        if old is not None:
            self.diagnostics.error(loc, f"syntax: of gem5 before 2015: expected {old}")
        elif token.type == "EQUAL":
            self.diagnostics.error(loc, "'=': unexpected: expected ':=' for an assignment")
        elif token.type == "IDENT" and self.text[position + len(token):position + len(token) + 1] == "'":
            self.diagnostics.error(loc, f"{self._readable(token)} before ': unexpected")
        elif loop := _LOOP.search(before):
            self.diagnostics.error(loc, f"'{loop[1]}': SLICC has no loops: expected statements without it")
        elif token.type in _STEPS and (target := _TARGET.search(before)):
            self.diagnostics.error(loc, f"'{token}': unexpected: expected '{target[0]} := {target[0]} {_STEPS[token.type]} 1'")
        else:
            self.diagnostics.error(loc, f"{self._readable(token)}: unexpected{self._expected()}{self._open_brace(token)}")

    def _open_brace(self, token: Token) -> str:
        """Where the brace is that a declaration shows to be open."""
        braces = [value for value in self.state.value_stack if isinstance(value, Token) and value.type == "LBRACE"]
        return f" that closes the '{{' of line {braces[-1].line}" if token.type in _DECLARATION and braces and self._takes("RBRACE") else ""

    def _readable(self, token: Token) -> str:
        text = str(token)
        text = text if len(text) <= 40 else text[:37] + "..."
        if token.type in ("IDENT", "NUMBER", "FLOAT"):
            return f"'{text}'"
        return f"word '{text}'" if text.isidentifier() else f"'{text}'" if token.type != "STRING" else f"string {text}"

    def _expected(self) -> str:
        """The end of a message: what the parser accepts at this place. Of more than six alternatives, only the end of a statement."""
        patterns = {terminal.name: terminal.pattern.value for terminal in self.lark.terminals}
        kinds: set[str] = self.interactive.accepts() if len(self.state.state_stack) < 1000 else set()
        words: list[str] = []
        for text, group in _GROUPS.items():
            if group <= kinds:
                words.append(text)
                kinds = kinds - group
        words += sorted({_READABLE.get(kind, f"'{patterns.get(kind, kind)}'") for kind in kinds})
        if len(words) > 6:
            return ": expected ';' or the rest of the statement" if "SEMICOLON" in kinds else ""
        return f": expected {' or '.join(words)}" if words else ""


def parse_text(name: str, text: str, diagnostics: Diagnostics) -> list[ast.Node]:
    """The declarations of one source text, includes not followed."""
    diagnostics.add_source(name, text)
    return _FileParser(name, text, diagnostics).run()


def parse_expression(text: str, loc: Loc) -> ast.Expr | None:
    """An expression of one line, as found in a `default=` or `constructor=` pair; None when SLICC cannot parse it."""
    lark, builder = _grammar()
    saved, builder.file = builder.file, loc.file
    try:
        decls: Any = lark.parse(f"int x := {text};")
    except (UnexpectedInput, TooDeep):
        return None
    finally:
        builder.file = saved
    return decls[0].init if len(decls) == 1 else None


def read_source(path: str, blame: Loc, diagnostics: Diagnostics) -> str | None:
    """The text of a file; None, with an error at `blame`, when it cannot be read."""
    try:
        if os.path.getsize(path) > MAX_FILE_BYTES:
            diagnostics.error(blame, f"file '{path}': larger than {MAX_FILE_BYTES >> 20} MiB: expected a SLICC file")
            return None
        with open(path, "rb") as file:
            data = file.read()
    except OSError as problem:
        diagnostics.error(blame, f"file '{path}': {problem.strerror or problem}: expected a readable file")
        return None
    return data.decode("utf-8", errors="replace").lstrip("\ufeff")


_PRELUDE_TREES: dict[tuple[str, str], bytes] = {}


class _Loader:
    """Follows includes, depth first. The declarations of NAME.prelude.sm beside the protocol follow those of the prelude."""

    def __init__(self, diagnostics: Diagnostics, path: str) -> None:
        self.diagnostics = diagnostics
        self.base = os.path.dirname(path)
        self.more = os.path.splitext(path)[0] + MORE_PRELUDE
        self.files: list[str] = []
        self.protocol: ast.ProtocolDecl | None = None

    def load(self, path: str, blame: Loc, stack: tuple[str, ...]) -> list[ast.Node]:
        real = os.path.realpath(path) if "\0" not in path else path  # no file has such a name
        if real in stack:
            self.diagnostics.error(blame, f"include '{os.path.basename(path)}': includes itself: expected another file")
            return []
        if len(stack) >= MAX_INCLUDE_DEPTH:
            self.diagnostics.error(blame, f"include '{os.path.basename(path)}': nested deeper than {MAX_INCLUDE_DEPTH}: expected "
                                   "fewer levels")
            raise Stop
        if stack and not os.path.isfile(path):
            self._missing(path, blame)
            return []
        path = ast.SourceFile(path, self.base)
        text = read_source(path, blame, self.diagnostics)
        if text is None:
            return []
        self.files.append(path)
        decls: list[ast.Node] = []
        for decl in self._parse(path, text):
            if isinstance(decl, ast.Include):
                decls.extend(self.load(self._find(decl.path, path), decl.loc, stack + (real,)))
                if decl.path == INTERFACES and os.path.isfile(self.more) and self.more not in self.files:
                    decls.extend(self.load(self.more, decl.loc, stack + (real,)))
            elif isinstance(decl, ast.ProtocolDecl):
                if self.protocol is not None:
                    self.diagnostics.error(decl.loc, f"protocol '{decl.name}': already named '{self.protocol.name}': expected one name")
                else:
                    self.protocol = decl
            else:
                decls.append(decl)
                if isinstance(decl, ast.Machine):
                    decl.decls = self._splice(decl.decls, path, stack + (real,))
        return decls

    def _parse(self, path: str, text: str) -> list[ast.Node]:
        """Files of the prelude are parsed once in a process; later compilations get copies of their trees."""
        if os.path.dirname(path) != PRELUDE:
            return parse_text(path, text, self.diagnostics)
        if (path, text) not in _PRELUDE_TREES:
            _PRELUDE_TREES[path, text] = pickle.dumps(parse_text(path, text, self.diagnostics), pickle.HIGHEST_PROTOCOL)
        self.diagnostics.add_source(path, text)
        decls: list[ast.Node] = pickle.loads(_PRELUDE_TREES[path, text])
        return decls

    def implicit_prelude(self, start: Loc) -> list[ast.Node]:
        """The prelude for a protocol that does not include it: gem5 24.1 includes it implicitly."""
        decls = self.load(os.path.join(PRELUDE, INTERFACES), start, ())
        return decls + (self.load(self.more, start, ()) if os.path.isfile(self.more) else [])

    def _splice(self, decls: list[ast.Node], path: str, stack: tuple[str, ...]) -> list[ast.Node]:
        """Includes within a machine's body."""
        spliced: list[ast.Node] = []
        for decl in decls:
            if isinstance(decl, ast.Include):
                spliced.extend(self.load(self._find(decl.path, path), decl.loc, stack))
            else:
                spliced.append(decl)
        return spliced

    def _missing(self, path: str, blame: Loc) -> None:
        """Reports an include of a file that does not exist, and suggests files beside it that the author may have meant."""
        folders = dict.fromkeys((os.path.dirname(path), self.base))
        names = sorted({name for folder in folders if os.path.isdir(folder or ".") for name in os.listdir(folder or ".")
                        if name.endswith((".sm", ".slicc"))} | {INTERFACES})
        self.diagnostics.error(blame, f"include '{os.path.basename(path)}': no such file in the folder of the including file or of the "
                               f"protocol{expected(os.path.basename(path), names, 'a file')}")

    def _find(self, name: str, includer: str) -> str:
        if name == INTERFACES:
            return os.path.join(PRELUDE, name)
        beside = os.path.join(os.path.dirname(includer), name)
        elsewhere = os.path.join(self.base, name)
        return elsewhere if os.path.isfile(elsewhere) and not os.path.isfile(beside) else beside


def parse_protocol(path: str, diagnostics: Diagnostics) -> ast.Program:
    """Parses a protocol and all that it includes. Raises Stop after reporting errors."""
    start = at_start(path)
    loader = _Loader(diagnostics, path)
    decls = loader.load(path, start, ())
    if loader.protocol is not None and not any(f.endswith(INTERFACES) for f in loader.files):
        decls = loader.implicit_prelude(start) + decls
    diagnostics.stop_on_error()
    if loader.protocol is None:
        diagnostics.error(start, 'protocol: not named: expected protocol "NAME"; at the start of the file')
        raise Stop
    name = loader.protocol.name.replace("-", "_")
    if not name.isidentifier() or not name.isascii():
        diagnostics.error(loader.protocol.loc, f"protocol '{loader.protocol.name}': not an identifier: expected letters, digits, '_' "
                          "and '-'")
        raise Stop
    header = os.path.splitext(path)[0] + HEADER
    text = read_source(header, start, diagnostics) if os.path.isfile(header) else ""
    return ast.Program(loc=loader.protocol.loc, name=name, decls=decls, files=loader.files, header_text=text or "")
