# SPDX-License-Identifier: BSD-3-Clause
"""`moscope compare`: what differs between two runs, points or sweeps, and which lines and functions account for it."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from moscope.cli import SIMULATED, Shared, command

if TYPE_CHECKING:
    from analysis.comparison.condition import Joined, Test

SCHEMA = "moscope.compare/1"


@command(unused=SIMULATED)
def compare(shared: Shared,
            a: Annotated[Path, typer.Argument(metavar="A", help="Run directory, a folder in its points/, or the folder of a sweep.")],
            b: Annotated[Path, typer.Argument(metavar="B", help="What to compare with A. Differences are B minus A.")],
            fail_if: Annotated[str | None, typer.Option(metavar="EXPR",
                                                        help="Condition on differences, such as 'throughput_per_s < -5%'. If it "
                                                             "holds for any pair of points, the exit code is 1.")] = None,
            html: Annotated[Path | None, typer.Option("--html", metavar="FILE", help="Write the comparison as a page.")] = None) -> int:
    """Compare two runs: configuration, throughput, time, and the lines and functions that account for the difference.

    Marks each difference that is within its statistical error (95 %).
    """
    from moscope import errors, paths
    from moscope.errors import UserError, unknown_name
    from moscope.traces.files import check_target

    paths.import_analysis()
    from analysis import RunDirectoryError
    from analysis.comparison import condition, pairs, sides, text

    check_target(html, ".html")
    try:
        wanted = condition.parse(fail_if) if fail_if is not None else None
        left, right = sides.side(a), sides.side(b)
        for problem in dict.fromkeys(f"{one.path}: {problem}" for one in (left, right) for problem in one.problems):
            shared.say(problem)
        matched, alone = sides.matched(left, right)
        if not matched:
            raise UserError(sides.unmatched(left, right))
        found = [pairs.compared(*pair) for pair in matched]
        failed, untested = tested(wanted, found) if wanted else ([], None)
    except condition.ConditionError as error:
        if error.unknown:
            raise unknown_name("--fail-if", "figure", error.unknown, pairs.FIGURES) from None
        raise UserError(f"--fail-if: {error}") from None
    except RunDirectoryError as error:
        raise UserError(str(error)) from None
    if html:
        write_page(html, found, alone, a, b)
    shared.answer(document(found, alone, ok=not failed and not untested), lambda: text.show(found, alone))
    for pair in failed:
        print(f"--fail-if {fail_if}: holds for {pair['b']}", file=sys.stderr)
    if untested and not failed:
        raise UserError(f"--fail-if: {untested}")
    return errors.FOUND if failed else errors.OK


def tested(wanted: "Test | Joined", found: list[dict[str, Any]]) -> tuple[list[dict[str, Any]], str | None]:
    """The pairs of which the condition holds, and why it could not be tested of the first for which it could not."""
    from analysis.comparison.condition import ConditionError

    failed, untested = [], None
    for pair in found:
        try:
            if wanted.holds(pair["figures"]):
                failed.append(pair)
        except ConditionError as error:
            untested = untested or str(error)
    return failed, untested


def document(found: list[dict[str, Any]], alone: list[str], ok: bool) -> dict[str, Any]:
    """The keys of the first pair, those of all pairs under `pairs`. `ok`: the condition was tested of every pair, and holds of none."""
    return {"schema": SCHEMA, "ok": ok, **found[0], "pairs": found, "not_compared": alone}


def write_page(file: Path, found: list[dict[str, Any]], alone: list[str], a: Path, b: Path) -> None:
    from analysis.comparison import page
    from moscope.traces.files import write_whole

    write_whole(file, page.document(found, alone, a, b).encode())
