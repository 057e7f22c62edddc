# SPDX-License-Identifier: BSD-3-Clause
"""The host side of the serial console: a terminal in raw mode, lines typed at prompts, texts to watch for.

In a terminal all keys go to the guest, including Ctrl-C, except for the escape: Ctrl-] followed by a letter.
"""

import errno
import os
import select
import sys
import termios
import tty
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

ESCAPE = 0x1D  # Ctrl-]
HELP = "Ctrl-] then: q ends the run, s shows the progress, ] sends Ctrl-] to the guest, ? shows this"


class Gone(Exception):
    """The other end of the console is gone: a closed pipe, or a terminal that was hung up."""


class Watch:
    """Finds texts in a stream that arrives in pieces."""

    def __init__(self, texts: list[str]) -> None:
        self._texts = [(text, text.encode()) for text in texts]
        self._keep = max((len(raw) for _, raw in self._texts), default=1) - 1
        self._tail = b""

    def feed(self, data: bytes) -> list[str]:
        """The texts that have appeared; each is listed once for each time that it ends within `data`."""
        joined, old = self._tail + data, len(self._tail)
        found: list[tuple[int, str]] = []
        for text, raw in self._texts:
            at = joined.find(raw)
            while at >= 0:
                if at + len(raw) > old:
                    found.append((at + len(raw), text))
                at = joined.find(raw, at + 1)
        self._tail = joined[-self._keep :] if self._keep else b""
        return [text for _, text in sorted(found)]


class Keys:
    """Typed input, split into bytes for the guest and commands for moscope."""

    def __init__(self) -> None:
        self._escaped = False

    def split(self, typed: bytes) -> tuple[bytes, list[str]]:
        """Bytes for the guest, and the letters that followed an escape."""
        guest, commands = bytearray(), []
        for key in typed:
            if self._escaped:
                self._escaped = False
                if key in (ESCAPE, ord("]")):
                    guest.append(ESCAPE)
                else:
                    commands.append(chr(key).lower())
            elif key == ESCAPE:
                self._escaped = True
            else:
                guest.append(key)
        return bytes(guest), commands


class Terminal:
    """The user's terminal. Only `raw()` changes its mode, and always restores it."""

    def __init__(self, stdin: int = 0, stdout: int = 1) -> None:
        self.stdin, self.stdout = stdin, stdout

    @contextmanager
    def raw(self) -> Iterator[None]:
        before: list[Any] = termios.tcgetattr(self.stdin)
        try:
            tty.setraw(self.stdin)
            yield
        finally:
            with suppress(termios.error):  # of a terminal that is gone
                termios.tcsetattr(self.stdin, termios.TCSADRAIN, before)

    def typed(self, patience: float = 0) -> bytes:
        """Input typed since the last call. If there is none, waits up to `patience` seconds for a key."""
        if not select.select([self.stdin], [], [], patience)[0]:
            return b""
        with _somebody_there():
            data = os.read(self.stdin, 4096)
        if not data:
            raise Gone
        return data

    def show(self, data: bytes) -> None:
        with _somebody_there():
            while data:
                data = data[os.write(self.stdout, data):]

    def remark(self, text: str) -> None:
        """Prints a line of moscope between those of the guest."""
        self.show(f"\r\n[moscope: {text}]\r\n".encode())


@contextmanager
def _somebody_there() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if error.errno not in (errno.EPIPE, errno.EIO):
            raise
        raise Gone from error


def is_interactive() -> bool:
    return sys.stdin.isatty() and sys.stdout.isatty()
