# SPDX-License-Identifier: BSD-3-Clause
"""Texts found in a stream whatever its pieces; keys and escapes; a terminal that is set back."""

import os
import pty
import termios

import pytest

from moscope.boot.console import Keys, Terminal, Watch


@pytest.mark.parametrize("size", [1, 2, 3, 7, 100])
def test_a_text_is_found_whatever_pieces_it_comes_in(size: int) -> None:
    watch = Watch(["ready", "dy!"])
    stream = b"..rea..ready!...ready"
    found = [t for i in range(0, len(stream), size) for t in watch.feed(stream[i : i + size])]
    assert found == ["ready", "dy!", "ready"]


def test_without_texts_nothing_is_found() -> None:
    watch = Watch([])
    assert watch.feed(b"abc") == [] and watch.feed(b"") == []


def test_every_byte_goes_to_the_guest_but_the_escape() -> None:
    keys = Keys()
    assert keys.split(b"a\x03\x1a") == (b"a\x03\x1a", [])  # Ctrl-C and Ctrl-Z too
    assert keys.split(b"x\x1d") == (b"x", [])
    assert keys.split(b"Qy") == (b"y", ["q"])  # the letter may come later
    assert keys.split(b"\x1d]\x1d\x1d") == (b"\x1d\x1d", [])


def test_the_terminal_is_set_back_even_after_an_error() -> None:
    parent, child = pty.openpty()
    try:
        terminal = Terminal(child, child)
        before = termios.tcgetattr(child)
        with pytest.raises(ValueError), terminal.raw():
            assert termios.tcgetattr(child)[3] & termios.ISIG == 0  # Ctrl-C is a byte like any other
            os.write(parent, b"\x03k")
            assert terminal.typed() == b"\x03k" and terminal.typed() == b""
            os.write(parent, b"l")
            assert terminal.typed(patience=60) == b"l"  # at once
            terminal.show(b"from the guest")
            raise ValueError
        assert termios.tcgetattr(child) == before
        assert os.read(parent, 100) == b"from the guest"
    finally:
        os.close(parent)
        os.close(child)
