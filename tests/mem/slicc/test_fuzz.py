# SPDX-License-Identifier: BSD-3-Clause
"""For any input the compiler returns a program, or errors that name a place; it raises no exception and does not hang. A program that
it returns has an interface, tables, C++ and a model, or errors of these that name a place. The seeds are fixed; `--long` runs
10^5 inputs, each of about 50 ms."""
from __future__ import annotations

import random
import re
import shutil
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from slicc import ast, emit_cpp, emit_model, interface_json
from slicc.compile import compile_protocol
from slicc.emit_model.machine import Place
from slicc.errors import MAX_ERRORS, Diagnostics, Stop
from slicc.tables import FORMATS

FOLDER = Path(__file__).parent / "protocols"
WORDS = ["{", "}", "(", ")", ";", ",", ":=", "=", "::", ":", ".", "[", "]", "*", "action", "transition", "machine", "peek", "enqueue",
         "if", "else", "return", "in_msg", "address", "1", "0.5", '"text"', "'x'", "State", "Event", "structure", "void", "OOD", "new",
         "static_cast", "is_valid", "!", "&&", "==", "++", "include", "protocol", "enumeration", "state_declaration", "\\", "é", "\0"]
SECONDS = 10.0  # of processor time, which does not depend on the load of the host


@pytest.fixture(name="folder", scope="module")
def _folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("fuzz")
    shutil.copytree(FOLDER / "common", folder / "common")
    return folder


def compiles_cleanly(folder: Path, text: bytes) -> None:
    path = folder / "fuzzed.slicc"
    path.write_bytes(text)
    begin = time.process_time()
    program, diagnostics = compile_protocol(str(path))
    assert time.process_time() - begin < SECONDS
    errors = diagnostics.errors()
    assert (program is None) == bool(errors)
    assert len(errors) <= MAX_ERRORS + 1
    if program is not None:
        emits_cleanly(program, diagnostics, folder)
    assert all(error.loc.file and error.loc.line > 0 and error.message for error in diagnostics.errors())
    diagnostics.report()


def emits_cleanly(program: ast.Program, diagnostics: Diagnostics, folder: Path) -> None:
    interface_json.text(program)
    for table in FORMATS.values():
        table(program)
    places = {m.name: Place(2, {p.name: 1 for p in m.params}) for m in program.machines}
    shutil.rmtree(folder / "out", ignore_errors=True)
    for emit in (lambda: emit_cpp.emit(program, folder / "out", diagnostics),
                 lambda: emit_model.emit(program, emit_model.Model(places, lines=1, messages=8), diagnostics)):
        try:
            emit()
        except Stop:
            assert diagnostics.errors()


def whole(name: str = "ok_statements") -> str:
    """A protocol as one text, with its included files, so that those are mutated too."""
    text = (FOLDER / f"{name}.slicc").read_text()
    for part in ("messages", "cache", "actions"):
        text = text.replace(f'include "common/{part}.sm";', (FOLDER / "common" / f"{part}.sm").read_text())
    return text


def test_the_unchanged_text_is_a_valid_protocol(folder: Path) -> None:
    path = folder / "whole.slicc"
    path.write_text(whole())
    program, diagnostics = compile_protocol(str(path))
    assert program is not None, diagnostics.report()


def truncated(rng: random.Random, text: str) -> bytes:
    return text[:rng.randrange(len(text))].encode()


def cut(rng: random.Random, text: str) -> bytes:
    first = rng.randrange(len(text))
    return (text[:first] + text[first + rng.randrange(1, 60):]).encode()


def with_words(rng: random.Random, text: str) -> bytes:
    for _ in range(rng.randrange(1, 5)):
        place = rng.randrange(len(text))
        text = text[:place] + " " + rng.choice(WORDS) + " " + text[place:]
    return text.encode()


def with_names_exchanged(rng: random.Random, text: str) -> bytes:
    words = text.split(" ")
    for _ in range(rng.randrange(1, 8)):
        a, b = rng.randrange(len(words)), rng.randrange(len(words))
        words[a], words[b] = words[b], words[a]
    return " ".join(words).encode()


def with_lines_shuffled(rng: random.Random, text: str) -> bytes:
    lines = text.split("\n")
    first = rng.randrange(len(lines))
    some = lines[first:first + 12]
    rng.shuffle(some)
    return "\n".join(lines[:first] + some + lines[first + 12:]).encode()


def with_bytes_changed(rng: random.Random, text: str) -> bytes:
    data = bytearray(text.encode())
    for _ in range(rng.randrange(1, 20)):
        data[rng.randrange(len(data))] = rng.randrange(256)
    return bytes(data)


def noise(rng: random.Random, text: str) -> bytes:
    return rng.randbytes(rng.randrange(3000))


def words_only(rng: random.Random, text: str) -> bytes:
    return " ".join(rng.choice(WORDS) for _ in range(rng.randrange(400))).encode()


def tokens(text: str) -> list[str]:
    return re.findall(r'\s+|//[^\n]*|"[^"\n]*"|\w+|.', text)


def with_a_name_changed(rng: random.Random, text: str) -> bytes:
    """A name becomes another one of the text: most such texts have good syntax, and some good types."""
    parts = tokens(text)
    names = [i for i, part in enumerate(parts) if part[0].isalpha() or part[0] == "_"]
    for _ in range(rng.randrange(1, 4)):
        parts[rng.choice(names)] = parts[rng.choice(names)]
    return "".join(parts).encode()


def with_a_number_or_operator_changed(rng: random.Random, text: str) -> bytes:
    parts = tokens(text)
    places = [i for i, part in enumerate(parts) if part.isdigit() or part in "<>+-*/!=&|" or part.startswith('"')]
    for _ in range(rng.randrange(1, 4)):
        parts[rng.choice(places)] = rng.choice(["0", "1", "-1", "18446744073709551616", "<", "==", "+", "!", '""', '"true"', "1.5"])
    return "".join(parts).encode()


def with_a_statement_moved(rng: random.Random, text: str) -> bytes:
    """A line of one block appears in another block, too."""
    lines = text.split("\n")
    statements = [i for i, line in enumerate(lines) if line.rstrip().endswith(";")]
    for _ in range(rng.randrange(1, 3)):
        lines.insert(rng.choice(statements) + rng.randrange(2), lines[rng.choice(statements)])
    return "\n".join(lines).encode()


def without_a_block(rng: random.Random, text: str) -> bytes:
    """A declaration or a block of statements is left out."""
    lines = text.split("\n")
    first = rng.choice([i for i, line in enumerate(lines) if line.rstrip().endswith("{")])
    depth, last = 0, first
    for last in range(first, len(lines)):
        depth += lines[last].count("{") - lines[last].count("}")
        if depth <= 0:
            break
    return "\n".join(lines[:first] + lines[last + 1:]).encode()


Mutation = Callable[[random.Random, str], bytes]
MUTATIONS: list[Mutation] = [truncated, cut, with_words, with_names_exchanged, with_lines_shuffled, with_bytes_changed, noise, words_only,
                             with_a_name_changed, with_a_number_or_operator_changed, with_a_statement_moved, without_a_block]


def fuzz(folder: Path, mutation: Mutation, rounds: range) -> None:
    text = whole()
    for seed in rounds:
        data = mutation(random.Random(seed), text)
        try:
            compiles_cleanly(folder, data)
        except BaseException:
            (folder / f"failed-{seed}.slicc").write_bytes(data)
            raise


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.__name__)
def test_a_damaged_protocol_gives_errors_or_a_program(folder: Path, mutation: Mutation) -> None:
    fuzz(folder, mutation, range(8))


@pytest.mark.long
@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.__name__)
def test_many_damaged_protocols_give_errors_or_a_program(folder: Path, mutation: Mutation) -> None:
    fuzz(folder, mutation, range(1000, 9400))


DEEP = {
    "parentheses": "int f() { return " + "(" * 20000 + "1" + ")" * 20000 + "; }",
    "nots": "bool f() { return " + "!" * 20000 + "true; }",
    "minuses": "int f() { return " + "- " * 20000 + "1; }",
    "sum": "int f() { return " + "1 + " * 20000 + "1; }",
    "members": "int f() { return a" + ".a" * 20000 + "; }",
    "calls": "int f() { return " + "f(" * 20000 + ")" * 20000 + "; }",
    "blocks": "void f() { " + "if (true) { " * 20000 + "}" * 20000 + " }",
    "else_ifs": "int f(int a) { if (a == 0) { return 0; }" + " else if (a == 1) { return 1; }" * 5000 + " return 2; }",
    "open_braces": "{" * 50000,
    "close_braces": "}" * 50000,
    "declarations": "int f(); " * 5000,
    "unclosed": "structure(A) { " * 5000,
    "long_name": "int " + "a" * 100000 + "();",
    "long_line": "int f() { return $" + " " * 100000 + "1 }",
    "includes_of_no_name": 'include "a\0b.sm"; include ""; include "/"; include "' + "a" * 5000 + '";',
    "long_number": "int f() { return " + "9" * 100000 + "; }",
}


@pytest.mark.parametrize("name", DEEP)
def test_deep_and_long_texts_neither_crash_nor_hang(folder: Path, name: str) -> None:
    compiles_cleanly(folder, ('protocol "deep";\ninclude "RubySlicc_interfaces.slicc";\n' + DEEP[name]).encode())


def test_a_model_without_a_core_is_an_error_at_a_machine(folder: Path) -> None:
    path = folder / "no_core.slicc"
    path.write_text(whole().replace("mandatoryQueue", "requests"))
    program, diagnostics = compile_protocol(str(path))
    assert program is not None, diagnostics.report()
    emits_cleanly(program, diagnostics, folder)
    assert [error.loc.line for error in diagnostics.errors()] == [path.read_text().split("machine(")[0].count("\n") + 1]
    assert "parameter mandatoryQueue" in diagnostics.report()


def test_a_file_that_cannot_be_read_is_an_error(folder: Path) -> None:
    for name in ("missing.slicc", "."):
        program, diagnostics = compile_protocol(str(folder / name))
        assert program is None and "expected a readable file" in diagnostics.report()


def test_a_long_chain_of_includes_is_an_error(folder: Path) -> None:
    for number in range(40):
        (folder / f"chain{number}.sm").write_text(f'include "chain{number + 1}.sm";\n')
    program, diagnostics = compile_protocol(str(folder / "chain0.sm"))
    assert program is None and "nested deeper" in diagnostics.report()
