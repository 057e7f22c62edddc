# SPDX-License-Identifier: BSD-3-Clause
"""Delta debugging (Zeller and Hildebrandt, 2002) of a failing run: fewer accesses, lines, cores and delays, as long as the
replay still fails in the same way."""

import itertools
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from moscope.protocol.counterexample.replay import Candidate, Delay, Outcome, Played, Player
from moscope.schema.constants import FS_PER_NS, LINE
from moscope.traces.script import LETTERS_AT

T = TypeVar("T")
SHORT = 3000  # up to this many accesses, single ones are also tried
SUFFIX = 64
PERMUTED = 4  # up to this many accesses, each order is tried
ROUND_FS = [digit * 10**power * FS_PER_NS for power in range(1, 5) for digit in (1, 2, 5)]  # plain times: 10, 20, 50, 100 ns, ...


@dataclass(frozen=True)
class Shrunk:
    candidate: Candidate
    outcome: Outcome
    replays: int
    complete: bool  # no single access can be left out any more

    @property
    def size(self) -> int:
        """The number of accesses; huge if no script can repeat the failure, because the delays are those of a record."""
        return len(self.candidate.accesses) if self.candidate.hashed is None else 1 << 30


def minimal(items: Sequence[T], fails: Callable[[Sequence[T]], bool]) -> list[T]:
    """A part of `items` that fails, of which no single item can be left out. `fails(items)` holds."""
    kept = list(items)
    size = max(1, len(kept) // 2)
    while True:
        removed = False
        at = 0
        while at < len(kept):
            without = kept[:at] + kept[at + size:]
            if len(without) < len(kept) and fails(without):
                kept, removed = without, True
            else:
                at += size
        if size == 1 and not removed:
            return kept
        size = max(1, size // 2) if not removed or size > 1 else 1


class Shrinker:
    """Shrinks one failing candidate until a given time of the host's monotonic clock."""

    def __init__(self, player: Player, kind: str, until: float) -> None:
        self.player = player
        self.node_bytes = player.node_bytes
        self.kind = kind
        self.until = until

    @property
    def over(self) -> bool:
        return time.monotonic() >= self.until

    def fails(self, candidate: Candidate) -> bool:
        return not self.over and bool(candidate.accesses) and self.player.play(candidate).kind == self.kind

    def shrink(self, start: Candidate) -> Shrunk:
        best = self._last(self._until_it_shows(start))
        best = self._fewer(best)
        if len(best.accesses) <= SHORT and not best.one_by_one:
            best = self._one_by_one(best)
        if not best.one_by_one:
            best = self._explicit(best)
        best = self._plainer(best)
        best = self._fewer(best)
        best = self._shorter(best)
        return Shrunk(best, self.player.play(best), self.player.played, not self.over)

    def _until_it_shows(self, c: Candidate) -> Candidate:
        """Without the accesses that begin after the one that shows the failure."""
        seen = self.player.play(c)
        last = seen.access
        if last is None:
            issued = [a["id"] for a in seen.answer["accesses"] if a["issued"] is not None]
            last = max(issued, default=len(c.accesses) - 1)
        limit = c.accesses[last].at
        cut = c.with_accesses(tuple(a for i, a in enumerate(c.accesses) if i <= last or (not c.one_by_one and a.at <= limit)))
        return cut if len(cut.accesses) < len(c.accesses) and self.fails(cut) else c

    def _last(self, c: Candidate) -> Candidate:
        """Only the last accesses, if they still fail; their number is doubled until they do."""
        n = SUFFIX
        while n < len(c.accesses):
            part = c.with_accesses(c.accesses[-n:])
            if self.fails(part):
                return part
            n *= 2
        return c

    def _fewer(self, c: Candidate) -> Candidate:
        """Fewer lines, cores and accesses, until a round changes nothing."""
        while not self.over:
            before = len(c.accesses)
            if not c.one_by_one and before <= SHORT:
                c = self._one_by_one(c)
            for key in (_line, _agent):
                c = self._without_groups(c, key)
            c = self._without_single(c)
            c = self._until_it_shows(c)
            if len(c.accesses) == before:
                break
        return c

    def _without_groups(self, c: Candidate, key: Callable[[Played], int]) -> Candidate:
        groups = sorted({key(a) for a in c.accesses})

        def only(some: Sequence[int]) -> Candidate:
            return c.with_accesses(tuple(a for a in c.accesses if key(a) in set(some)))

        return only(minimal(groups, lambda some: self.fails(only(some)))) if len(groups) > 1 else c

    def _without_single(self, c: Candidate) -> Candidate:
        return c.with_accesses(tuple(minimal(c.accesses, lambda some: self.fails(c.with_accesses(tuple(some))))))

    def _one_by_one(self, c: Candidate) -> Candidate:
        alone = Candidate(c.accesses, one_by_one=True)
        return alone if self.fails(alone) else c

    def _explicit(self, c: Candidate) -> Candidate:
        """As few explicit delays of messages as possible."""
        listed = c if c.hashed is None else self._listed(c)
        if listed is None:
            return c
        kept = minimal(listed.delays, lambda some: self.fails(replace(listed, delays=tuple(some)))) if listed.delays else []
        return replace(listed, delays=tuple(kept))

    def _listed(self, c: Candidate) -> Candidate | None:
        """Replaces the record's delays by explicit ones, with times from the beginning of the script; None if this does not fail."""
        answer = self.player.play(c, list_delays=True).answer
        position = {a.number: i for i, a in enumerate(c.accesses)}
        start = min(self.player.first_edge, *(a.at for a in c.accesses))
        moved = tuple(replace(a, at=a.at - start) for a in c.accesses)
        delays = tuple(Delay(position[d["access"]], d["message"], d["to"], d["n"], d["fs"])
                       for d in answer["message_delays"] if d["access"] in position)
        listed = Candidate(moved, delays=delays)
        return listed if self.fails(listed) else None

    def _shorter(self, c: Candidate) -> Candidate:
        """A few accesses in another order, one by one; otherwise each delay and each access's time as short as possible."""
        if c.one_by_one or c.hashed is not None:
            return c
        if len(c.accesses) <= PERMUTED:
            for order in itertools.permutations(c.accesses):
                alone = self._one_by_one(replace(c, accesses=order))
                if alone.one_by_one:
                    return alone
        for i, a in enumerate(c.accesses):
            for at in _below(a.at):
                earlier = replace(c, accesses=(*c.accesses[:i], replace(a, at=at), *c.accesses[i + 1:]))
                if self.fails(earlier):
                    c = earlier
                    break
        for i, d in enumerate(c.delays):
            for fs in _below(d.fs)[1:]:
                shorter = replace(c, delays=(*c.delays[:i], replace(d, fs=fs), *c.delays[i + 1:]))
                if self.fails(shorter):
                    c = shorter
                    break
        return c

    def _plainer(self, c: Candidate) -> Candidate:
        """Makes the script easier to read, one change at a time."""
        node = self.node_bytes
        changes: list[Callable[[Candidate], Candidate]] = [
            _from_the_start, _rounded, _at_once, _first_words, lambda c: _lettered(c, node, 1), lambda c: _lettered(c, node, 2), _low_cores]
        for change in changes:
            changed = change(c)
            if changed != c and self.fails(changed):
                c = changed
        for i, a in enumerate(c.accesses):
            for op in {"if": ("ld",), "rmw": ("st", "ld"), "nt": ("st",), "ldu": ("ld",)}.get(a.op, ()):
                plain = replace(c, accesses=(*c.accesses[:i], replace(a, op=op), *c.accesses[i + 1:]))
                if a.size < LINE and self.fails(plain):
                    c = plain
                    break
        return c


def _below(fs: int) -> list[int]:
    """Zero, and the plain times below a time."""
    return [t for t in (0, *ROUND_FS) if t < fs]


def _line(a: Played) -> int:
    return a.line


def _agent(a: Played) -> int:
    return a.agent


def _from_the_start(c: Candidate) -> Candidate:
    first = min(a.at for a in c.accesses)
    return replace(c, accesses=tuple(replace(a, at=a.at - first) for a in c.accesses))


def _rounded(c: Candidate) -> Candidate:
    if c.one_by_one:
        return c
    return replace(c, accesses=tuple(replace(a, at=a.at // FS_PER_NS * FS_PER_NS) for a in c.accesses),
                   delays=tuple(replace(d, fs=-(-d.fs // (5 * FS_PER_NS)) * 5 * FS_PER_NS) for d in c.delays))


def _at_once(c: Candidate) -> Candidate:
    return replace(c, accesses=tuple(replace(a, at=0) for a in c.accesses))


def _first_words(c: Candidate) -> Candidate:
    return replace(c, accesses=tuple(replace(a, address=a.line, size=8) if a.size < LINE else a for a in c.accesses))


def _lettered(c: Candidate, node: int, apart: int) -> Candidate:
    """Moves lines to the places that a script names by letters, `apart` lines from each other. `node`: bytes of a node's memory."""
    place: dict[int, int] = {}
    for a in c.accesses:
        home = a.line // node * node
        count = sum(1 for line in place if line // node * node == home)
        place.setdefault(a.line, home + min(LETTERS_AT, node // 2) + count * apart * LINE)
    return replace(c, accesses=tuple(replace(a, address=place[a.line] + a.address % LINE) for a in c.accesses))


def _low_cores(c: Candidate) -> Candidate:
    """Numbers the cores in the order of their first appearance."""
    order: dict[int, int] = {}
    for a in c.accesses:
        if a.agent < 0x8000:
            order.setdefault(a.agent, len(order))
    return replace(c, accesses=tuple(replace(a, agent=order.get(a.agent, a.agent)) for a in c.accesses))


