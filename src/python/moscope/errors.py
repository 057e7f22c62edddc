# SPDX-License-Identifier: BSD-3-Clause
"""The kinds of error and their exit codes. This is the only place that relates the two (contracts: exit codes)."""

from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from typing import Any

OK = 0
FOUND = 1  # a check or test found a fault
INTERRUPTED = 130


class MoscopeError(Exception):
    """Reported as one message, never with a traceback."""

    exit_code = 5
    kind = ""
    point = ""  # the point of a run that has failed with this error

    def report(self) -> str:
        """What the user reads: a user error starts with the file at fault, the other kinds say what they are."""
        return f"moscope: {self.kind}: {self}" if self.kind else str(self)


class UserError(MoscopeError):
    """Bad configuration, file or flag; the text reads `file: problem: expected ...`."""

    exit_code = 2


class ProtocolError(MoscopeError):
    """A coherence protocol broke: no transition, a failed assertion, a stuck request."""

    exit_code = 3
    kind = "protocol error"


class GuestDied(MoscopeError):
    """The guest panicked, took a triple fault, or hung by its watchdog."""

    exit_code = 4
    kind = "the guest died"


class TimeEnded(GuestDied):
    """The guest was still running at the end of simulated time."""

    kind = "the guest was stopped"


class WorkloadFailed(MoscopeError):
    """A program in the guest ended too early, or its results are wrong."""

    exit_code = FOUND
    kind = "the workload failed"


class SimulatorBug(MoscopeError):
    """An assertion of the simulator itself."""

    kind = "simulator bug"


class BuildFailed(MoscopeError):
    """moscope's own sources did not compile."""

    kind = "the build failed"


KINDS = {kind.__name__: kind
         for kind in (UserError, ProtocolError, GuestDied, TimeEnded, WorkloadFailed, SimulatorBug, BuildFailed)}


def kind_of(error: MoscopeError) -> str:
    """The name in KINDS of the error's class, or of the nearest class that it derives from."""
    return next((kind.__name__ for kind in type(error).__mro__ if KINDS.get(kind.__name__) is kind), SimulatorBug.__name__)


# Exit codes of failures, the most severe first.
SEVERITY = tuple(kind.exit_code for kind in (SimulatorBug, ProtocolError, GuestDied, UserError, WorkloadFailed))


def worst(codes: Iterable[int]) -> int:
    """The most severe of several exit codes; OK without any."""
    return min((code for code in codes if code in SEVERITY), key=SEVERITY.index, default=OK)


def failures(errors: Iterable[MoscopeError]) -> dict[str, Any]:
    """`failed` of a run's document: the errors of its points; nothing if no point has failed."""
    found = [{"point": e.point, "kind": kind_of(e), "error": str(e), "exit_code": e.exit_code} for e in errors if e.point]
    return {"failed": found} if found else {}


def of_failure(one: Mapping[str, Any]) -> MoscopeError:
    """The error that an entry under `failed` of a document describes."""
    error: MoscopeError = KINDS.get(one["kind"], SimulatorBug)(one["error"])
    return error


def of_failures(document: dict[str, Any]) -> list[MoscopeError]:
    """The errors under `failed` of a run's document."""
    found: list[MoscopeError] = []
    for one in document.get("failed", []):
        error = of_failure(one)
        error.point = one["point"]
        found.append(error)
    return found


def nearest(name: str, known: Iterable[str]) -> list[str]:
    """The three known names that come closest to `name`, best first; letter case is forgiven."""
    by_lower = {k.lower(): k for k in known}
    return [by_lower[m] for m in get_close_matches(name.lower(), by_lower, n=3, cutoff=0.6)]


def _close(name: str, known: Sequence[str]) -> list[str]:
    """The most similar known names, or else the first three that contain `name`."""
    return nearest(name, known) or [k for k in known if name and name.lower() in k.lower()][:3]


MOST_NAMES = 30  # in a message


def unknown_name(where: str, what: str, name: str, known: Iterable[str], every: str = "",
                 first: Iterable[str] = ()) -> UserError:
    """`where: no WHAT called "name": expected a known name, such as ...`; if no name is similar, all names, or the first of many.
    `every`: all names in words, where they are worth listing in any case. `first`: known names that are listed before all others,
    in this order."""
    preferred = list(dict.fromkeys(first))
    known = [*preferred, *sorted(set(known).difference(preferred))]
    close = _close(name, preferred) or _close(name, known)
    if close:
        right = "a known name, such as " + " or ".join(close) + (f" (one of {every})" if every else "")
    elif every:
        right = f"one of {every}"
    elif len(known) > MOST_NAMES:
        right = f"one of {len(known)} names: {', '.join(known[:MOST_NAMES])} ..."
    else:
        right = "one of " + ", ".join(known) if known else "none, as there are none"
    return UserError(f'{where}: no {what} called "{name}": expected {right}')
