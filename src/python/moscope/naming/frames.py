# SPDX-License-Identifier: BSD-3-Clause
"""Names for stack memory by the call whose frame contains it: `main()::stats[2].packets`, or `frame of main()` if no variable is
known.

The calls are known from three observations: threads that do not run when the record begins, the samples of waiting cores, and
threads that do not run at its end. If frames in the samples cover a byte, the samples decide; otherwise the two other observations.
The byte gets a name only if all of these frames agree.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache

from moscope.naming.guest import PAGE
from moscope.naming.tasks import TABLE_MASK
from moscope.naming.unwind import chains
from moscope.naming.unwind.activations import Activation, Thread, activations
from moscope.naming.user import Program, Variable
from moscope.schema.constants import LINE

OUTLINED = re.compile(r"\.(_omp_fn\.\d+|omp_outlined(_debug__)?(\.\d+)?)$")  # the body of a parallel region of OpenMP
Linked = Callable[[int, int], tuple[Program, int] | None]
Threads = Mapping[int, list[Thread]]  # by page table


@dataclass(frozen=True)
class Place:
    """A byte of a stack. `field` and `type` are those of a variable; without a variable, `field` is the distance from the
    beginning of the frame. [first, end) are the bytes of the variable."""

    program: str
    name: str
    field: str
    type: str = ""
    first: int = 0
    end: int = 0


@dataclass(frozen=True)
class _Found:
    one: Activation
    program: Program
    function: str
    variable: Variable | None


class _Observation:
    """The frames that were seen in one address space."""

    def __init__(self, threads: Iterable[Thread], linked: Callable[[int], tuple[Program, int] | None]) -> None:
        self.frames: dict[tuple[int, int, int], Activation] = {}
        for thread in threads:
            for one in activations(thread, linked):
                self.frames.setdefault(one.key, one)
        self._pages = {page for one in self.frames.values() for page in range(one.low // PAGE, (one.top - 1) // PAGE + 1)}
        self._lines: dict[int, list[Activation]] = {}
        self.outlined: list[Activation] | None = None  # bodies of parallel regions, found when first needed

    def has(self, va: int) -> bool:
        """Whether the page of the address contains frames."""
        return va // PAGE in self._pages

    def covering(self, va: int) -> list[Activation]:
        if not self.has(va):
            return []
        line = va // LINE * LINE
        if line not in self._lines:
            self._lines[line] = [one for one in self.frames.values() if one.low < line + LINE and line < one.top]
        return [one for one in self._lines[line] if one.low <= va < one.top]


class Frames:
    """Names stack memory. `linked` gives the program and the link address of an instruction, by address and CR3."""

    def __init__(self, linked: Linked) -> None:
        self._linked = linked
        self._first: Threads = {}
        self._last: Threads = {}
        self._packed = b""
        self._sampled: Threads | None = None
        self._spaces: dict[int, tuple[_Observation, _Observation, _Observation]] = {}
        self._variables: dict[Activation, list[Variable]] = {}
        self._functions: dict[Activation, tuple[Program, str]] = {}

    def parked(self, threads: Iterable[tuple[int, Thread]]) -> None:
        """Takes the threads that do not run: the first call is for the beginning of the record, later ones for its end."""
        found = _by_space(threads)
        self._first, self._last = self._first or found, found if self._first else {}
        self._forget()

    def sampled(self, packed: bytes) -> None:
        """Takes the samples of waiting cores, as the engine packs them."""
        self._packed = packed
        self._forget()

    def _samples(self) -> Threads:
        if self._sampled is None:
            users = ((sample.address_space & TABLE_MASK, chains.user(sample)) for sample in chains.samples(self._packed))
            self._sampled = _by_space((space, Thread(*found)) for space, found in users if found)
        return self._sampled

    def _forget(self) -> None:
        self._sampled = None
        self._spaces.clear()
        self._variables.clear()
        self._functions.clear()

    def at(self, va: int, cr3: int) -> Place | None:
        """The call and the variable that a byte belongs to; None if nothing is known for certain."""
        first, sampled, last = self._space(cr3 & TABLE_MASK)
        found = sampled.covering(va) or [*first.covering(va), *last.covering(va)]
        if not found:
            return None
        seen = [self._found(one, va) for one in found]
        if len({(one.program.name, one.function) for one in seen}) > 1:
            return None
        named = {(one.variable.start, one.variable.function, one.variable.name): one for one in seen if one.variable}
        one = next(iter(named.values())) if len(named) == 1 else seen[0]
        variable = one.variable if len(named) == 1 else self._shared(va, one.function, (first, sampled, last)) if not named else None
        if variable is None:
            return Place(one.program.name, f"frame of {one.function}()", f"+{va - one.one.low:#x}")
        path, title = variable.field(va - variable.start)
        return Place(one.program.name, f"{OUTLINED.sub('', variable.function)}()::{variable.name}{path}", path.removeprefix("."), title,
                     variable.start, variable.end)

    def none_in_page(self, page: int, cr3: int) -> bool:
        """Whether at() finds nothing in the page at an address."""
        return not any(observation.has(page) for observation in self._space(cr3 & TABLE_MASK))

    def _found(self, one: Activation, va: int) -> _Found:
        """The first variable of a call that covers a byte; parameters of the function that it has called may also be in its
        frame."""
        own = self._covering(one, va)
        if own is None and one.inner:
            own = self._covering(one.inner, va)
        program, function = self._code(one)
        return _Found(one, program, function, own)

    def _code(self, one: Activation) -> tuple[Program, str]:
        if one not in self._functions:
            assert isinstance(one.program, Program)
            self._functions[one] = one.program, one.program.function(one.link)
        return self._functions[one]

    def _covering(self, one: Activation, va: int) -> Variable | None:
        if one not in self._variables:
            self._variables[one] = self._code(one)[0].variables(one)
        return next((variable for variable in self._variables[one] if variable.start <= va < variable.end), None)

    def _shared(self, va: int, function: str, observations: tuple[_Observation, ...]) -> Variable | None:
        """A variable that the compiler has moved into a structure for the threads of a parallel region. The calls of these
        threads know its place."""
        known = {(variable.start, variable.name): variable for observation in observations for one in self._outlined(observation)
                 if OUTLINED.sub("", self._code(one)[1]) == function and (variable := self._covering(one, va))}
        return next(iter(known.values())) if len(known) == 1 else None

    def _outlined(self, observation: _Observation) -> list[Activation]:
        if observation.outlined is None:
            observation.outlined = [one for one in observation.frames.values() if OUTLINED.search(self._code(one)[1])]
        return observation.outlined

    def _space(self, table: int) -> tuple[_Observation, _Observation, _Observation]:
        if table not in self._spaces:
            linked = cache(lambda address: self._linked(address, table))
            first, sampled, last = (_Observation(threads.get(table, ()), linked)
                                    for threads in (self._first, self._samples(), self._last))
            self._spaces[table] = first, sampled, last
        return self._spaces[table]


def _by_space(threads: Iterable[tuple[int, Thread]]) -> Threads:
    found: dict[int, list[Thread]] = {}
    for space, thread in threads:
        found.setdefault(space, []).append(thread)
    return found
